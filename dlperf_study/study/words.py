"""Numbers in sentences."""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 device``, ``2 devices``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def rounded(value: float) -> str:
    """Return a number with four digits that count, and without an exponent: ``19000``."""
    return f"{float(f'{value:.4g}'):.15g}"
