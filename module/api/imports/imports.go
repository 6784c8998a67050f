// Package imports answers the routes of imports.
package imports

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/ingest/formats"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/imports"
)

// Imports are the handlers of imports.
type Imports struct {
	Service *imports.Service
	// The most bytes of a file, as it is sent.
	MaxSize int64
}

// Routes are the routes of imports.
func (s *Imports) Routes() []api.Route {
	const read, write = "batch_import:read", "batch_import:write"
	return []api.Route{
		{Method: http.MethodGet, Pattern: "imports", Scope: read, Handler: s.list},
		{Method: http.MethodPost, Pattern: "imports", Scope: write, Handler: s.create},
		{Method: http.MethodGet, Pattern: "imports/:name", Scope: read, Handler: s.get},
		{Method: http.MethodDelete, Pattern: "imports/:name", Scope: write, Handler: s.remove},
	}
}

func (s *Imports) list(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	all, err := s.Service.List(c.Project.ID)
	if err != nil {
		return api.Response{}, err
	}
	return api.PageOf(in, all)
}

func (s *Imports) get(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	one, err := s.Service.Get(c.Project.ID, in.At.Name)
	if err != nil {
		return api.Response{}, mistake(err, s.MaxSize)
	}
	return api.JSON(http.StatusOK, one), nil
}

func (s *Imports) remove(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	if err := s.Service.Delete(c.Project.ID, in.At.Name); err != nil {
		return api.Response{}, mistake(err, s.MaxSize)
	}
	return api.NoContent(), nil
}

// create keeps the body, and answers when all of it is on disk.
func (s *Imports) create(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
	request, err := requestOf(in)
	if err != nil {
		return api.Response{}, err
	}
	if in.ContentLength > s.MaxSize {
		return api.Response{}, mistake(imports.ErrSize, s.MaxSize)
	}
	request.Project, request.CreatedBy = c.Project.ID, c.Key.ID
	one, err := s.Service.Add(request, in.Body, max(in.ContentLength, 0), s.MaxSize)
	if err != nil {
		return api.Response{}, mistake(err, s.MaxSize)
	}
	return api.JSON(http.StatusCreated, one), nil
}

// parameters are those of the address of an import.
var parameters = []string{"format", "map", "dry_run", "learn_types", "filename"}

func requestOf(in api.Input) (imports.Request, error) {
	out := imports.Request{}
	query := in.URL.Query()
	for name := range query {
		if !known(name) {
			return out, api.Invalid(name, "invalid_input", "Extra inputs are not permitted: an import has the parameters %s", strings.Join(parameters, ", "))
		}
	}
	format, err := formats.ParseFormat(query.Get("format"))
	if err != nil {
		return out, api.Invalid("format", "invalid_input", "%v", err)
	}
	mapping, err := formats.ParseMapping(query["map"])
	if err != nil {
		return out, api.Invalid("map", "invalid_input", "%v", err)
	}
	out.Format, out.Map = string(format), mapping
	if out.DryRun, err = flag(query.Get("dry_run"), false); err != nil {
		return out, api.Invalid("dry_run", "invalid_input", "A valid boolean is required.")
	}
	if out.LearnTypes, err = flag(query.Get("learn_types"), true); err != nil {
		return out, api.Invalid("learn_types", "invalid_input", "A valid boolean is required.")
	}
	const most = 200
	if out.Name = query.Get("filename"); len(out.Name) > most {
		return out, api.Invalid("filename", "invalid_input", "The name has more than %d bytes.", most)
	}
	return out, encoding(in, &out)
}

func known(name string) bool {
	return slices.Contains(parameters, name) || name == "token" || name == "personal_api_key"
}

func flag(text string, otherwise bool) (bool, error) {
	if text == "" {
		return otherwise, nil
	}
	return strconv.ParseBool(text) //nolint:wrapcheck // the caller says it
}

// encoding takes Content-Encoding as what the file is compressed with: it is kept as it comes, and told from what it contains.
func encoding(in api.Input, request *imports.Request) error {
	switch coding := strings.ToLower(in.Header.Get("Content-Encoding")); coding {
	case "", "identity", "gzip", "x-gzip", "zstd":
	case "br":
		request.Name += ".br"
	default:
		return api.UnsupportedEncoding(coding, "identity, gzip, zstd, br")
	}
	if media := in.Header.Get("Content-Type"); strings.HasPrefix(strings.ToLower(media), "multipart/") {
		return api.Invalid("", "invalid_input", "Send the file as the body of the request, not as a form: for example with curl --data-binary @FILE.")
	}
	return nil
}

// mistake says what an import is refused for.
func mistake(err error, most int64) error {
	switch {
	case errors.Is(err, imports.ErrNotFound):
		return api.NotFound("Not found.")
	case errors.Is(err, imports.ErrSize):
		return api.FileTooLarge(most)
	case errors.Is(err, imports.ErrQueue):
		return api.FullQueue("Too many imports of the project are waiting. Send the file when one of them has ended.")
	case errors.Is(err, imports.ErrRoom):
		return api.FullQueue("The files of imports that wait take all the room that there is for them. Send the file when one of them has ended.")
	case errors.Is(err, imports.ErrDisk):
		return api.DiskFull(err)
	}
	return api.BodyError(err)
}
