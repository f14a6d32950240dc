"""Links of a table or a figure on a page: to itself, and to its files next to the page."""

#: The page with every run.
RUNS_FILE = "runs.html"
#: What a reader calls the files of each kind.
_LABELS = {"csv": "CSV", "tex": "LaTeX", "svg": "SVG", "pdf": "PDF"}


def anchor_link(anchor: str) -> str:
    """Return the link by which a reader gets the address of one element; it is shown while pointed at."""
    return f'<a class="anchor-link" href="#{anchor}" aria-label="link to this">#</a>'


def downloads(folder: str, name: str, *kinds: str, of: str = "") -> str:
    """Return links to the files of one table or figure, after ``of`` what; the folder is next to the page."""
    links = []
    for kind in kinds:
        links.append(f'<a href="{folder}/{name}.{kind}" download>{_LABELS[kind]}</a>')
    label = f" {of}:" if of else ""
    return f' <span class="downloads">{label}{" ".join(links)}</span>'


def evidence_anchor(identity: str) -> str:
    """Return the name of the first run of a configuration on the page of runs: the digest that ends its identity."""
    return f"run-{identity.rpartition('-')[2]}"


def evidence_link(anchor: str, number: str) -> str:
    """Return a number that leads to the runs it was computed from; ``number`` is HTML."""
    return f'<a href="{RUNS_FILE}#{anchor}">{number}</a>'
