module capture

go 1.26.0

require github.com/posthog/posthog-go v1.5.2
