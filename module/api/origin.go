package api

import (
	"net/http"
	"regexp"
	"strings"
)

// Origins says what links in answers begin with.
type Origins struct {
	// PublicURL is the scheme and host of all links; empty for those that the client used.
	PublicURL string
	// FromTrustedProxy reports whether a request comes from a proxy whose headers X-Forwarded-Proto and X-Forwarded-Host say what the client
	// used. Nil: none does.
	FromTrustedProxy func(*http.Request) bool
}

// Origin is the scheme and host that links in answers begin with. It is empty, which makes links relative, if the host of the request is
// not a valid name or address: links would contain text of an attacker's choice.
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

// forwarded returns what the nearest proxy says in a header. Proxies that add to a list write at its end.
func forwarded(h http.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}
	last := values[len(values)-1]
	return strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
}

// maxHost is the most bytes of a name and a port.
const maxHost = 253 + len(":65535")

// HostForm is a name or an address, with a port or without.
var HostForm = regexp.MustCompile(`^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)
