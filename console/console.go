// Package console serves the web console: a page for every path that it has, and the scripts and styles of that page. They are built by npm
// into the folder dist and embedded from there. A binary that was built without them serves a page that says so.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/accept"
)

//go:embed all:dist
var embedded embed.FS

// Embedded returns the console that this binary was built with.
var Embedded = sync.OnceValues(func() (*Console, error) {
	dist, err := fs.Sub(embedded, "dist")
	if err != nil {
		return nil, fmt.Errorf("reading the embedded console: %w", err)
	}
	return New(dist)
})

// The paths that a console answers.
const (
	homePath   = "/"
	pagePrefix = "/project/"
	filePrefix = "/console/"
)

// Serves reports whether a path is one that a console answers.
func Serves(path string) bool {
	return path == homePath || strings.HasPrefix(path, pagePrefix) || strings.HasPrefix(path, filePrefix)
}

// Console serves the page and its files.
type Console struct {
	page  *file
	built bool
	files map[string]*file // by path, such as /console/main-5ZK3TX.js
}

// New reads a console from the folder that it was built into: index.html, which is the page, and the folder console with the files that it refers
// to. For a file x there may be x.br and x.gz, which hold it compressed. The name of each file but the page's must change with its contents, because
// browsers keep it forever. A folder without index.html is a console that was not built.
func New(dist fs.FS) (*Console, error) {
	c := &Console{files: map[string]*file{}}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		isPage := name == "index.html"
		if err != nil || entry.IsDir() || !isPage && (!strings.HasPrefix("/"+name, filePrefix) || compressed(name)) {
			return err
		}
		f, err := readFile(dist, name)
		if err != nil {
			return err
		}
		if isPage {
			c.page, c.built = f, true
		} else {
			c.files["/"+name] = f
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the console: %w", err)
	}
	if !c.built {
		c.page = newFile("missing.html", []byte(missing))
	}
	return c, nil
}

// ServeHTTP answers a request whose path Serves.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, values := range headers {
		w.Header()[name] = slices.Clone(values) // Caddy's header directive writes into them
	}
	switch f := c.files[r.URL.Path]; {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Method not allowed.", http.StatusMethodNotAllowed)
	case f != nil:
		f.serve(w, r, "public, max-age=31536000, immutable")
	case strings.HasPrefix(r.URL.Path, filePrefix):
		w.Header().Set("Cache-Control", "no-store") // the next version of the console may have it
		http.Error(w, "Not found.", http.StatusNotFound)
	case !c.built:
		w.Header().Set("Content-Type", c.page.contentType)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNotImplemented)
		_, _ = w.Write(c.page.plain()) // there is nobody to tell
	default:
		c.page.serve(w, r, "no-cache")
	}
}

// headers are sent with every answer. Scripts and styles come from the site alone, nothing inline runs, and no other site can frame the page or
// reach its window.
var headers = http.Header{
	"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	"X-Content-Type-Options":       {"nosniff"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Opener-Policy":   {"same-origin"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
}

// missing is the page of a binary without a console.
const missing = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>The console is not in this binary</title>
<h1>The console is not in this binary</h1>
<p>The API works, but this server was built without its web console.</p>
<p>To get it, install Node.js with npm, run <code>make build</code> in a checkout of the project, and start the server again.</p>
<p>To remove this page, take the option <code>console</code> out of the site's <code>analytics</code> directive.</p>
</html>
`

// encoding is a content coding that files are kept in.
type encoding struct{ name, suffix string }

// encodings are those that files may have been compressed in, the better first.
var encodings = []encoding{{"br", ".br"}, {"gzip", ".gz"}}

func compressed(name string) bool {
	for _, e := range encodings {
		if strings.HasSuffix(name, e.suffix) {
			return true
		}
	}
	return false
}

// file is a file in all its encodings.
type file struct {
	contentType string
	forms       []form // the plain one is the last
}

// form is a file in one encoding.
type form struct {
	encoding string // empty for none
	etag     string
	length   string
	bytes    []byte
}

func newFile(name string, plain []byte) *file {
	f := &file{contentType: contentType(name)}
	f.add("", plain)
	return f
}

func (f *file) add(encoding string, content []byte) {
	sum := sha256.Sum256(content)
	f.forms = append(f.forms, form{encoding, `"` + hex.EncodeToString(sum[:16]) + `"`, strconv.Itoa(len(content)), content})
}

func (f *file) plain() []byte { return f.forms[len(f.forms)-1].bytes }

func readFile(dist fs.FS, name string) (*file, error) {
	f := &file{contentType: contentType(name)}
	for _, e := range encodings {
		content, err := fs.ReadFile(dist, name+e.suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f.add(e.name, content)
	}
	plain, err := fs.ReadFile(dist, name)
	if err != nil {
		return nil, err
	}
	f.add("", plain)
	return f, nil
}

// serve answers with the form that the client prefers.
func (f *file) serve(w http.ResponseWriter, r *http.Request, cacheControl string) {
	chosen := f.choose(strings.Join(r.Header.Values("Accept-Encoding"), ","))
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", cacheControl)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Etag", chosen.etag)
	if chosen.encoding != "" {
		h.Set("Content-Encoding", chosen.encoding)
		h.Set("Content-Length", chosen.length) // http.ServeContent leaves it out of compressed answers
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(chosen.bytes))
}

// choose returns the form with the greatest weight in an Accept-Encoding header, the smallest of several.
func (f *file) choose(header string) *form {
	best, most := &f.forms[len(f.forms)-1], 0
	for i := range f.forms[:len(f.forms)-1] {
		if weight := accept.Weight(header, f.forms[i].encoding); weight > most {
			best, most = &f.forms[i], weight
		}
	}
	return best
}

// contentType returns the type of a file by its name. It does not depend on what types the machine knows.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".json", ".map":
		return "application/json"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
