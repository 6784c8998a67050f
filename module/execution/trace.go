package execution

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// traced begins a span below the one that Caddy's tracing handler put into ctx, and returns a function that ends it. Without tracing it does nothing.
// No attribute is a client's value.
func traced(ctx context.Context, name string, attributes ...attribute.KeyValue) (spanCtx context.Context, end func(error)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := parent.TracerProvider().Tracer("github.com/caddy-analytics/caddy-analytics/module").Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, failureReason(err))
		}
		span.End()
	}
}
