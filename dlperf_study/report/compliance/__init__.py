"""Which rules of measuring a study keeps: each rule with the function that checks it in the evidence of the study.

Nothing is claimed that a check did not look at: what a rule asks and no column can tell is not in its answer.
"""

from dlperf_study.dataset.dataset import Dataset, kept_with_dataset
from dlperf_study.report.compliance.own_rules import OWN_RULES
from dlperf_study.report.compliance.published_rules import PUBLISHED_RULES
from dlperf_study.report.compliance.rule import Checked, Compliance, Rule, RuleResult

__all__ = ["OWN_RULES", "PUBLISHED_RULES", "RULE_SETS", "Checked", "Compliance", "Rule", "RuleResult", "checked_rules"]

#: The rules of each set, in the order of the page.
RULE_SETS: dict[str, tuple[Rule, ...]] = {
    "Hoefler and Belli, SC'15": PUBLISHED_RULES,
    "This project": OWN_RULES,
}


@kept_with_dataset
def checked_rules(dataset: Dataset) -> tuple[Checked, ...]:
    """Return every rule with what its check found in a study, in the order of ``RULE_SETS``."""
    results = []
    for rule_set, rules in RULE_SETS.items():
        results += [Checked(rule_set, rule, rule.check(dataset)) for rule in rules]
    return tuple(results)
