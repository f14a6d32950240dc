"""Looking at results in a notebook: choose data, factors and a metric; see a chart, its table, and the code of both."""

from dlperf_study.explorer.chart import chart
from dlperf_study.explorer.results import Results, data_names, results_of
from dlperf_study.explorer.widget import explore

__all__ = ["Results", "chart", "data_names", "explore", "results_of"]
