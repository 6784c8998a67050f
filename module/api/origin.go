package api

import (
	"net/http"
	"regexp"
	"strings"
)

// Origins says what links in responses begin with.
type Origins struct {
	// PublicURL is the scheme and host of all links; empty to use those of the request.
	PublicURL string
	// FromTrustedProxy reports whether a request comes from a proxy whose headers X-Forwarded-Proto and X-Forwarded-Host are trusted to name the scheme and
	// host that the client used. Nil trusts no proxy.
	FromTrustedProxy func(*http.Request) bool
	// CutPrefix returns the beginning of the path that the client asked for, escaped, if the server has cut it off before this handler. Nil if it cuts nothing.
	CutPrefix func(*http.Request) string
}

// Base returns what links in responses have before the path: the public URL, or else the origin and what was cut off the path of the request.
func (in *Input) Base() string {
	if in.Origins.CutPrefix == nil || in.Origins.PublicURL != "" {
		return in.Origin()
	}
	return in.Origin() + in.Origins.CutPrefix(in.Request)
}

// Origin returns the scheme and host of links in responses. It is empty, which makes links relative, if the host of the request is not a valid
// name or address: links would contain text chosen by an attacker.
func (in *Input) Origin() string {
	if in.Origins.PublicURL != "" {
		return in.Origins.PublicURL
	}
	scheme, host := "http", in.Host
	if in.TLS != nil {
		scheme = "https"
	}
	if trusted := in.Origins.FromTrustedProxy; trusted != nil && trusted(in.Request) {
		if proto := forwarded(in.Header, "X-Forwarded-Proto"); proto == "http" || proto == "https" {
			scheme = proto
		}
		if name := forwarded(in.Header, "X-Forwarded-Host"); name != "" {
			host = name
		}
	}
	if len(host) > maxHost || !HostForm.MatchString(host) {
		return ""
	}
	return scheme + "://" + host
}

// forwarded returns the nearest proxy's value of a header. Proxies that add to a list append to it.
func forwarded(h http.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}
	last := values[len(values)-1]
	return strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
}

// maxHost is the longest name with a port, in bytes.
const maxHost = 253 + len(":65535")

// HostForm matches a host name or address, with or without a port.
var HostForm = regexp.MustCompile(`^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)
