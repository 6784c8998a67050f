package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
	"github.com/caddy-analytics/caddy-analytics/module/backups"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Route is a path of the admin API.
type Route struct {
	// Pattern is the path, as [http.ServeMux] has it.
	Pattern string
	// Streamed is whether the answer consists of adminapi.BackupLine lines, for work that may take hours. It stops when the client disconnects.
	Streamed bool

	methods methods
}

type methods map[string]handler

// handler returns a value to send as JSON. That of a streamed route sends its answer itself.
type handler func(s *Server, w http.ResponseWriter, r *http.Request) (any, error)

// Routes returns all routes.
func Routes() []Route {
	return []Route{
		{Pattern: "/analytics/projects", methods: methods{http.MethodGet: (*Server).listProjects, http.MethodPost: (*Server).createProject}},
		{Pattern: "/analytics/projects/{id}", methods: methods{http.MethodPatch: (*Server).setProject, http.MethodDelete: (*Server).deleteProject}},
		{Pattern: "/analytics/projects/{id}/tokens", methods: methods{
			http.MethodGet: (*Server).listCaptureTokens, http.MethodPost: (*Server).rotateCaptureToken,
		}},
		{Pattern: "/analytics/projects/{id}/tokens/{token}", methods: methods{http.MethodDelete: (*Server).revokeCaptureToken}},
		{Pattern: "/analytics/projects/{id}/purge", methods: methods{http.MethodPost: (*Server).purgeProject}},
		{Pattern: "/analytics/keys", methods: methods{http.MethodGet: (*Server).listKeys, http.MethodPost: (*Server).createKey}},
		{Pattern: "/analytics/keys/{id}/{action}", methods: methods{http.MethodPost: (*Server).changeKey}},
		{Pattern: "/analytics/console", methods: methods{http.MethodPost: (*Server).signIn}},
		{Pattern: "/analytics/tokens/rotate", methods: methods{http.MethodPost: (*Server).rotateTokens}},
		{Pattern: "/analytics/capture", methods: methods{http.MethodGet: (*Server).captureStatus}},
		{Pattern: "/analytics/properties", methods: methods{http.MethodPost: (*Server).setProperty}},
		{Pattern: "/analytics/cohorts", methods: methods{http.MethodGet: (*Server).listCohorts, http.MethodPost: (*Server).createCohort}},
		{Pattern: "/analytics/cohorts/{id}", methods: methods{http.MethodPatch: (*Server).renameCohort, http.MethodDelete: (*Server).deleteCohort}},
		{Pattern: "/analytics/cohorts/{id}/recalculate", methods: methods{http.MethodPost: (*Server).recalculateCohort}},
		{Pattern: "/analytics/alerts", methods: methods{http.MethodGet: (*Server).listAlerts}},
		{Pattern: "/analytics/alerts/{id}/check", methods: methods{http.MethodPost: (*Server).checkAlert}},
		{Pattern: "/analytics/endpoints", methods: methods{http.MethodGet: (*Server).exportEndpoints}},
		{Pattern: "/analytics/endpoints/{action}", methods: methods{http.MethodPost: (*Server).endpointFiles}},
		{Pattern: "/analytics/persons/delete", methods: methods{http.MethodPost: (*Server).deletePersons}},
		{Pattern: "/analytics/persons/deletions", methods: methods{http.MethodGet: (*Server).listDeletions}},
		{Pattern: "/analytics/persons/erase", methods: methods{http.MethodPost: (*Server).erase}},
		{Pattern: "/analytics/import", methods: methods{http.MethodGet: (*Server).importProgress, http.MethodPost: (*Server).importFile}},
		streamed("/analytics/backups/create", (*Server).createBackup),
		streamed("/analytics/backups/list", (*Server).listBackups),
		streamed("/analytics/backups/restore", (*Server).restoreBackup),
		streamed("/analytics/backups/unpack", (*Server).unpackBackup),
	}
}

// Serve answers a request if the route has its method. It calls enter for the server that answers, and leave at the end. The errors are those of enter, and
// [caddy.APIError] with the full reason: unlike customers, operators may see it.
func (t *Route) Serve(w http.ResponseWriter, r *http.Request, enter func() (s *Server, leave func(), err error)) error {
	handle, ok := t.methods[r.Method]
	if !ok {
		return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("method %s is not allowed here", r.Method)}
	}
	s, leave, err := enter()
	if err != nil {
		return err
	}
	defer leave()
	result, err := handle(s, w, r)
	if err != nil {
		return apiError(err)
	}
	if t.Streamed {
		return nil
	}
	body := jsontext.Append(nil, result)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client may be gone; there is nobody to tell
	return nil
}

func apiError(err error) error {
	status := http.StatusInternalServerError
	var mistake *registry.FieldError
	var file *imports.FileError
	switch {
	case errors.As(err, &file):
		status = http.StatusBadRequest
	case errors.As(err, &mistake), errors.Is(err, errBadRequest), errors.Is(err, registry.ErrRevoked), errors.As(err, new(*backups.RefusedError)):
		status = http.StatusBadRequest
	case errors.As(err, new(*backups.BrokenOffError)), errors.As(err, new(*deletions.RefusedError)):
		status = http.StatusConflict
	case errors.Is(err, registry.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, registry.ErrUnavailable), errors.Is(err, registry.ErrInDoubt), files.IsPassing(err):
		status = http.StatusServiceUnavailable
	}
	return caddy.APIError{HTTPStatus: status, Err: err, Message: err.Error()}
}

// errBadRequest marks a mistake in an operator's request.
var errBadRequest = errors.New("bad request")

func badRequest(format string, args ...any) error {
	return badRequestError{fmt.Errorf(format, args...)}
}

// badRequestError is errBadRequest, and says only what is wrong.
type badRequestError struct{ error }

func (e badRequestError) Unwrap() []error { return []error{errBadRequest, e.error} }

func readBody[T any](r *http.Request) (T, error) {
	var body T
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		return body, badRequest("reading the request: %w", err)
	}
	return body, nil
}
