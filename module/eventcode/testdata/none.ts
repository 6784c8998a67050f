// Code generated from the events of a project. DO NOT EDIT.

import original from 'posthog-js'
import type { CaptureOptions, CaptureResult, PostHog, Properties } from 'posthog-js'

/** The events, each with the properties that are known of it. */
export interface EventSchemas {
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
