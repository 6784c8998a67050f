# Code generated from the events of a project. DO NOT EDIT.
"""Captures the events of a project with PostHog's SDK, and knows the properties of each event:

    posthog_typed.capture("ordered", distinct_id="ann", properties={"amount": 12.5})

Other events are captured with posthog.capture.
"""

from datetime import datetime
from typing import Any, Dict, List, Literal, Optional, TypedDict, Union, overload

import posthog as _posthog


# The properties of the event "ordered".
OrderedProperties = TypedDict(
    "OrderedProperties",
    {
        "address": Dict[str, Any],
        "amount": float,
        "at": Union[str, datetime],
        "first order": bool,
        "items": List[Any],
        "note": Any,
    },
    total=False,
)

# The properties of the event "signed up".
SignedUpProperties = TypedDict(
    "SignedUpProperties",
    {
        "plan": str,
    },
    total=False,
)


@overload
def capture(event: Literal["$pageview"], *, properties: Optional[Dict[str, Any]] = ..., **kwargs: Any) -> Optional[str]: ...


@overload
def capture(event: Literal["ordered"], *, properties: Optional[OrderedProperties] = ..., **kwargs: Any) -> Optional[str]: ...


@overload
def capture(event: Literal["signed up"], *, properties: Optional[SignedUpProperties] = ..., **kwargs: Any) -> Optional[str]: ...


def capture(event: str, *, properties: Any = None, **kwargs: Any) -> Optional[str]:
    """Captures an event, and returns its id. Arguments other than these are those of posthog.capture."""
    return _posthog.capture(event=event, properties=properties, **kwargs)
