package eventcode

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

var typeScriptTypes = map[Type]string{
	String: "string", Numeric: "number", Boolean: "boolean", DateTime: "string | Date", Array: "any[]", Object: "Record<string, any>", Any: "any",
}

const typeScriptHead = `// ` + header + `

import original from 'posthog-js'
import type { CaptureOptions, CaptureResult, PostHog, Properties } from 'posthog-js'

/** The events, each with the properties that are known of it. */
export interface EventSchemas {
`

const typeScriptTail = `}

export type EventName = keyof EventSchemas

/** The properties of an event: those that are known have their type, and there may be others. */
export type EventProperties<Name extends EventName> = EventSchemas[Name] & Record<string, any>

/** posthog-js, which knows the properties of each event. */
export interface TypedPostHog extends Omit<PostHog, 'capture'> {
    /** Captures an event that is known. */
    capture<Name extends EventName>(
        event: Name,
        properties?: EventProperties<Name> | null,
        options?: CaptureOptions
    ): CaptureResult | undefined
    /** Captures any other event. */
    capture<Name extends string>(
        event: Name extends EventName ? never : Name,
        properties?: Properties | null,
        options?: CaptureOptions
    ): CaptureResult | undefined
    /** Captures an event whose properties are not checked. */
    captureRaw(event: string, properties?: Properties | null, options?: CaptureOptions): CaptureResult | undefined
}

const posthog = original as unknown as TypedPostHog
posthog.captureRaw = (event, properties, options) => original.capture(event, properties, options)

export default posthog
export * from 'posthog-js'
`

func writeTypeScript(events []Event) (string, error) {
	var b strings.Builder
	b.WriteString(typeScriptHead)
	for _, e := range events {
		if len(e.Properties) == 0 {
			fmt.Fprintf(&b, "    %s: Record<string, any>\n", quoteJS(e.Name))
			continue
		}
		fmt.Fprintf(&b, "    %s: {\n", quoteJS(e.Name))
		for _, p := range e.Properties {
			fmt.Fprintf(&b, "        %s?: %s\n", quoteJS(p.Name), typeScriptTypes[p.Type])
		}
		b.WriteString("    }\n")
	}
	b.WriteString(typeScriptTail)
	return b.String(), nil
}

// quoteJS returns a text as an ASCII literal.
func quoteJS(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, unit := range utf16.Encode([]rune(text)) {
		switch {
		case unit == '"', unit == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(unit))
		case unit < ' ', unit >= 0x7f:
			fmt.Fprintf(&b, `\u%04x`, unit)
		default:
			b.WriteByte(byte(unit))
		}
	}
	b.WriteByte('"')
	return b.String()
}
