package openapi

import "github.com/getkin/kin-openapi/openapi3"

// errorSchemas returns the bodies of errors: contract api.md, sections 5.7 and 7. RunError is a superset of Error, so that one schema covers both formats of
// a run's mistakes.
func errorSchemas() openapi3.Schemas {
	standard := object(map[string]*openapi3.Schema{
		"type":   described(text(), "validation_error, invalid_request, authentication_error, throttled_error or server_error"),
		"code":   described(text(), "For programs, such as hogql_query_error."),
		"detail": described(text(), "For people."),
		"attr":   described(orNull(text()), "The field of the request that is wrong."),
		"extra?": described(openapi3.NewObjectSchema().WithAnyAdditionalProperties(), "Where in a query's text the mistake is."),
	})
	run := openapi3.NewAllOfSchema()
	run.AllOf = openapi3.SchemaRefs{refTo("Error"), inline(object(map[string]*openapi3.Schema{
		"error?":           described(text(), "The detail once more: of mistakes in version, limit and offset."),
		"current_version?": described(int32s(), "The newest version, where the one asked for does not exist."),
	}))}
	return openapi3.Schemas{"Error": inline(standard), "RunError": inline(run)}
}

// errorResponses returns the failures of a run, by their names among the components.
func errorResponses() openapi3.ResponseBodies {
	failure := func(description, schema string, headers ...string) *openapi3.ResponseRef {
		r := openapi3.NewResponse().WithDescription(description).WithContent(openapi3.Content{
			"application/json": openapi3.NewMediaType().WithSchemaRef(refTo(schema)),
		})
		r.Headers = headersOf(append(headers, "X-Request-Id")...)
		return &openapi3.ResponseRef{Value: r}
	}
	return openapi3.ResponseBodies{
		"BadRequest": failure("The request, a variable or the query is wrong, the version is switched off, or the query meets a limit: "+
			"query_timeout, query_memory_limit, query_too_large or query_estimated_too_slow.", "RunError"),
		"Unauthorized": failure("There is no key, or an unknown one.", "Error", "WWW-Authenticate"),
		"Forbidden":    failure("The key lacks the scope endpoint:read, or is of another project.", "Error"),
		"NotFound":     failure("There is no such endpoint or version, or the endpoint is switched off.", "RunError"),
		"Expired":      failure("The rows that the cursor pages through are no longer kept (cursor_expired): begin again without a cursor.", "Error"),
		"Throttled": failure("Too many queries: a rate is spent, or the project's queue is full. Retry-After says when to come back.", "Error",
			"Retry-After", "RateLimit", "RateLimit-Policy"),
		"Unavailable": failure("The database is down or busy; Retry-After says when to come back.", "Error", "Retry-After"),
		"Failed":      failure("Any other failure, such as a body that is not JSON (415) or too large (413), or a bug (500).", "Error"),
	}
}

// errorHeaders returns the headers that the failures use.
func errorHeaders() openapi3.Headers {
	headers := openapi3.Headers{}
	all := answerHeaders()
	for _, failure := range errorResponses() {
		for name := range failure.Value.Headers {
			headers[name] = all[name]
		}
	}
	return headers
}

// failures are the failures of each operation. The status default stands for those that clients handle alike.
var failures = map[string]string{
	"400": "BadRequest", "401": "Unauthorized", "403": "Forbidden", "404": "NotFound", "410": "Expired", "429": "Throttled", "503": "Unavailable", "default": "Failed",
}

// answerHeaders returns the headers of answers, by name.
func answerHeaders() openapi3.Headers {
	header := func(description string, s *openapi3.Schema) *openapi3.HeaderRef {
		return &openapi3.HeaderRef{Value: &openapi3.Header{Parameter: openapi3.Parameter{Description: description, Schema: inline(s)}}}
	}
	return openapi3.Headers{
		"Age":                 header("Seconds since the rows were computed; only of cached answers.", int32s()),
		"Cache-Control":       header("How long the rows are fresh from when they were computed.", text()),
		"Cache-Status":        header("How the cache took part: RFC 9211.", text()),
		"Content-Disposition": header("The name of the file.", text()),
		"ETag":                header("Send it in If-None-Match to get a 304 while nothing has changed.", text()),
		"Next-Cursor":         header("The cursor for the next page; absent if there is none.", text()),
		"RateLimit":           header("What is left of each rate that the query counts towards; absent from cached answers, which count towards none.", text()),
		"RateLimit-Policy":    header("What these rates are: draft-ietf-httpapi-ratelimit-headers.", text()),
		"Retry-After":         header("Seconds to wait.", int32s()),
		"Server-Timing":       header("Milliseconds: total, and on a miss compile and clickhouse; buckets says how many buckets of time were computed.", text()),
		"WWW-Authenticate":    header("Bearer.", text()),
		"X-Request-Id":        header("The ID of the request, as in the server's log.", text()),
	}
}

func headersOf(names ...string) openapi3.Headers {
	headers := make(openapi3.Headers, len(names))
	for _, name := range names {
		headers[name] = &openapi3.HeaderRef{Ref: "#/components/headers/" + name}
	}
	return headers
}
