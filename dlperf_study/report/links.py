"""Links of a table or a figure on a page: to itself, and to its files next to the page."""

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
