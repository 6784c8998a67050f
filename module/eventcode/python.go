package eventcode

import (
	"fmt"
	"strings"
)

var pythonTypes = map[Type]string{
	String: "str", Numeric: "float", Boolean: "bool", DateTime: "Union[str, datetime]", Array: "List[Any]", Object: "Dict[str, Any]", Any: "Any",
}

const pythonHead = `# ` + header + `
"""Captures the events of a project with PostHog's SDK, and knows the properties of each event:

    posthog_typed.capture("ordered", distinct_id="ann", properties={"amount": 12.5})

Other events are captured with posthog.capture.
"""

from datetime import datetime
from typing import Any, Dict, List, Literal, Optional, TypedDict, Union, overload

import posthog as _posthog

`

const pythonTail = `    """Captures an event, and returns its id. Arguments other than these are those of posthog.capture."""
    return _posthog.capture(event=event, properties=properties, **kwargs)
`

const pythonEnding = "Properties"

func writePython(events []Event) (string, error) {
	var b strings.Builder
	b.WriteString(pythonHead)
	taken := names{}
	types := make([]string, len(events))
	for i, e := range events {
		if types[i] = "Dict[str, Any]"; len(e.Properties) == 0 {
			continue
		}
		types[i] = taken.take(exported(e.Name, isASCIILetter), pythonEnding) + pythonEnding
		fmt.Fprintf(&b, "\n# The properties of the event %s.\n%[2]s = TypedDict(\n    \"%[2]s\",\n    {\n", quote(e.Name), types[i])
		for _, p := range e.Properties { // in this form a name need not be an identifier
			fmt.Fprintf(&b, "        %s: %s,\n", quote(p.Name), pythonTypes[p.Type])
		}
		b.WriteString("    },\n    total=False,\n)\n")
	}
	if len(events) > 1 { // a single overload is not allowed
		for i, e := range events {
			fmt.Fprintf(&b, "\n\n@overload\ndef capture(event: Literal[%s], *, properties: Optional[%s] = ..., **kwargs: Any) -> Optional[str]: ...\n", quote(e.Name), types[i])
		}
	}
	event, properties := "str", "Any"
	if len(events) == 1 {
		event, properties = "Literal["+quote(events[0].Name)+"]", "Optional["+types[0]+"]"
	}
	fmt.Fprintf(&b, "\n\ndef capture(event: %s, *, properties: %s = None, **kwargs: Any) -> Optional[str]:\n", event, properties)
	b.WriteString(pythonTail)
	return b.String(), nil
}
