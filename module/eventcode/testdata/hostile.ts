// Code generated from the events of a project. DO NOT EDIT.

import original from 'posthog-js'
import type { CaptureOptions, CaptureResult, PostHog, Properties } from 'posthog-js'

/** The events, each with the properties that are known of it. */
export interface EventSchemas {
    "": {
        ""?: any
        "\u0000"?: boolean
        " "?: string
        "\""?: number
        "\"\"\""?: string
        "#{x}"?: Record<string, any>
        "${x}"?: any[]
        "%s %[1]d"?: any
        "'"?: boolean
        "'''"?: number
        "*/"?: any[]
        "/*"?: Record<string, any>
        "//"?: any
        "1st"?: any[]
        "</script>"?: string
        "A b"?: string
        "AB"?: number
        "X"?: string
        "\\"?: boolean
        "\\\""?: string | Date
        "\\u0022"?: any[]
        "__proto__"?: string | Date
        "`"?: string | Date
        "a\u000ab"?: Record<string, any>
        "a\u000d\u000ab"?: any
        "a b"?: string | Date
        "a b capture"?: boolean
        "a with b"?: any[]
        "a-b"?: any[]
        "aB"?: Record<string, any>
        "a_b"?: any
        "class"?: number
        "constructor"?: any[]
        "func"?: string | Date
        "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "?: any
        "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long "?: string
        "option"?: boolean
        "type"?: boolean
        "with"?: string | Date
        "x capture"?: Record<string, any>
        "x2"?: number
        "xCapture"?: any
        "\u007f"?: string | Date
        "\u00e9a"?: any
        "\u0301x"?: boolean
        "\u0663"?: number
        "\u2028"?: string
        "\u2029"?: number
        "\u65e5\u672c"?: Record<string, any>
        "\ud83d\ude00"?: string
        "\ufffd"?: Record<string, any>
    }
    "\u0000": Record<string, any>
    " ": Record<string, any>
    "\"": Record<string, any>
    "\"\"\"": Record<string, any>
    "#{x}": Record<string, any>
    "${x}": Record<string, any>
    "%s %[1]d": Record<string, any>
    "'": Record<string, any>
    "'''": Record<string, any>
    "*/": Record<string, any>
    "/*": Record<string, any>
    "//": Record<string, any>
    "1st": Record<string, any>
    "</script>": Record<string, any>
    "A b": Record<string, any>
    "AB": Record<string, any>
    "X": Record<string, any>
    "\\": Record<string, any>
    "\\\"": Record<string, any>
    "\\u0022": Record<string, any>
    "__proto__": Record<string, any>
    "`": Record<string, any>
    "a\u000ab": Record<string, any>
    "a\u000d\u000ab": Record<string, any>
    "a b": Record<string, any>
    "a b capture": Record<string, any>
    "a with b": Record<string, any>
    "a-b": Record<string, any>
    "aB": Record<string, any>
    "a_b": Record<string, any>
    "class": Record<string, any>
    "constructor": Record<string, any>
    "func": Record<string, any>
    "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ": Record<string, any>
    "long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long ": Record<string, any>
    "option": Record<string, any>
    "type": Record<string, any>
    "with": Record<string, any>
    "x capture": Record<string, any>
    "x2": Record<string, any>
    "xCapture": Record<string, any>
    "\u007f": Record<string, any>
    "\u00e9a": Record<string, any>
    "\u0301x": Record<string, any>
    "\u0663": Record<string, any>
    "\u2028": Record<string, any>
    "\u2029": Record<string, any>
    "\u65e5\u672c": Record<string, any>
    "\ud83d\ude00": Record<string, any>
    "\ufffd": Record<string, any>
}

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
