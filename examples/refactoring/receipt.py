"""A receipt as text, as CSV or as HTML."""


def receipt(items, style):
    """`items` are pairs of a name and a price in cents."""
    if style == "text":
        lines = []
        total = 0
        for name, cents in items:
            total += cents
            euros = f"{int(cents / 100)}.{abs(cents) % 100:02}"
            lines.append(f"{name:<12}{euros:>8}")
        euros = f"{int(total / 100)}.{abs(total) % 100:02}"
        lines.append(f"{'total':<12}{euros:>8}")
        return "\n".join(lines) + "\n"
    elif style == "csv":
        lines = ["name,euros"]
        total = 0
        for name, cents in items:
            total += cents
            euros = f"{int(cents / 100)}.{abs(cents) % 100:02}"
            lines.append(f"{name},{euros}")
        euros = f"{int(total / 100)}.{abs(total) % 100:02}"
        lines.append(f"total,{euros}")
        return "\n".join(lines) + "\n"
    elif style == "html":
        lines = ["<table>"]
        total = 0
        for name, cents in items:
            total += cents
            euros = f"{int(cents / 100)}.{abs(cents) % 100:02}"
            lines.append(f"<tr><td>{name}</td><td>{euros}</td></tr>")
        euros = f"{int(total / 100)}.{abs(total) % 100:02}"
        lines.append(f"<tr><td>total</td><td>{euros}</td></tr>")
        lines.append("</table>")
        return "\n".join(lines) + "\n"
    else:
        raise ValueError(f"no such style: {style}")
