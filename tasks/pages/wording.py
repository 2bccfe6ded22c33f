"""Numbers and names as people read them, the same on the screen and on the page."""

from datetime import UTC, datetime

from data_schemas.reports import Comparison, SuiteScore
from tasks.platform.resources import REGISTRATION

NBSP = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
MERGED = "merged"


def percent(share: float) -> str:
    """0.4123 -> '41.2 %'."""
    return f"{100 * share:.1f}{NBSP}%"


def signed_points(difference: float) -> str:
    """0.142 -> '+14.2'; a difference that rounds to nothing has no sign."""
    text = f"{100 * difference:+.1f}".replace("-", MINUS)
    return "0.0" if text in ("+0.0", f"{MINUS}0.0") else text


def interval(score: SuiteScore) -> str:
    """'37.1 to 45.0'."""
    return f"{100 * score.low:.1f} to {100 * score.high:.1f}"


def is_clear(comparison: Comparison) -> bool:
    """True if the interval leaves out zero."""
    return comparison.low > 0.0 or comparison.high < 0.0


def parent_name(parent: str) -> str:
    """Name the model that another one is compared with; 'merged' says nothing by itself."""
    return "the merged model before RL" if parent == MERGED else parent


def duration(seconds: float) -> str:
    """75.2 -> '1 min 15 s'."""
    if seconds < 9.95:
        return f"{seconds:.1f}{NBSP}s"
    total = round(seconds)
    if total < 60:
        return f"{total}{NBSP}s"
    minutes, rest = divmod(total, 60)
    if minutes < 60:
        return f"{minutes}{NBSP}min {rest}{NBSP}s"
    return f"{minutes // 60}{NBSP}h {minutes % 60}{NBSP}min"


def gpu_cost(gpu_seconds: float) -> str:
    """7200 -> '2.0 GPU hours, 5.00 EUR', at the price of the registration; '' for none."""
    if not gpu_seconds:
        return ""
    price, currency = REGISTRATION.gpu_hour
    hours = gpu_seconds / 3600
    money = f", {hours * price:,.2f}{NBSP}{currency}" if currency else ""
    return f"{hours:,.1f}{NBSP}GPU{NBSP}hours{money}"


def count(number: int) -> str:
    """12345 -> '12,345'."""
    return f"{number:,}"


def suite_label(suite: str) -> str:
    """'domain:tool_use' -> 'tool use'."""
    return suite.split(":", 1)[-1].replace("_", " ")


def date(unix_seconds: float) -> str:
    """Unix time -> '2026-11-21 10:03 UTC'."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
