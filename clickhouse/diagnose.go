package clickhouse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
)

// Codes of exceptions that an operator can mend.
const (
	unknownDatabase = 81
	accessDenied    = 497
)

const unavailable = "ClickHouse cannot be reached"

// ports are what a ClickHouse server listens on unless it is told otherwise.
const ports = "the native protocol (clickhouse://) has port 9000, with TLS 9440; HTTP (http://, https://) has port 8123, with TLS 8443"

// explain finds out why ClickHouse cannot be asked.
func (k *contact) explain(e *Error) outage {
	var err error = e
	if e.cause != nil {
		err = e.cause
	}
	if why, ok := k.refused(err); ok {
		return why
	}
	if why, ok := k.wrongPort(err); ok {
		return why
	}
	if why, ok := k.unconnected(err); ok {
		return why
	}
	return outage{reason: k.clean(withoutAddress(err).Error()), advice: "look into the log of ClickHouse, and check host and port of the clickhouse DSN: " + ports}
}

// refused explains what ClickHouse itself says.
func (k *contact) refused(err error) (outage, bool) {
	if old, ok := errors.AsType[*oldError](err); ok {
		return outage{reason: old.Error(), advice: "upgrade ClickHouse to " + LeastVersion + " or newer"}, true
	}
	code, text := exceptionOf(err)
	switch code {
	case 192, 193, 194, 516:
		return outage{
			reason: fmt.Sprintf("it refuses the user %q or the password (code %d)", k.user, code),
			advice: "check user and password of the clickhouse DSN; special characters in them have to be escaped, as in a URL",
		}, true
	case unknownDatabase:
		return outage{
			reason: fmt.Sprintf("it has no database %q", k.database),
			advice: "create the database, or name another one behind the host in the clickhouse DSN",
		}, true
	case 291, accessDenied:
		return outage{
			reason: fmt.Sprintf("the user %q lacks a privilege: %s", k.user, k.clean(strings.TrimSpace(text))),
			advice: "GRANT it to the user; docs/operations.md lists what is needed",
		}, true
	case 0:
		return outage{}, false
	}
	if greetingFailed(err) {
		return outage{
			reason: fmt.Sprintf("it does not know the questions that a client begins with (code %d): it is older than ClickHouse %s", code, LeastVersion),
			advice: "upgrade ClickHouse to " + LeastVersion + " or newer",
		}, true
	}
	return outage{reason: fmt.Sprintf("it answers with an error (code %d)", code), advice: "look into the log of ClickHouse"}, true
}

// greetingFailed reports whether the driver's first question over HTTP was refused.
func greetingFailed(err error) bool {
	return strings.Contains(err.Error(), "failed to query server hello")
}

// oldException is how servers before 20.1 began the text of an exception over HTTP, which the driver does not read.
var oldException = regexp.MustCompile(`Code: (\d+), e\.(?:displayText|what)\(\) = (?:DB::)?(?:[A-Za-z]*Exception: )?(.*)`)

// exceptionOf gives code and text of the exception in an error, or 0.
func exceptionOf(err error) (code int, text string) {
	if x, ok := errors.AsType[*driver.Exception](err); ok {
		return int(x.Code), x.Message
	}
	if status, ok := errors.AsType[*driver.HTTPError](err); ok {
		if m := oldException.FindStringSubmatch(status.Error()); m != nil {
			code, err := strconv.Atoi(m[1])
			if err == nil {
				return code, m[2]
			}
		}
	}
	return 0, ""
}

// Outages that show in more than one way.
var (
	silence = outage{
		"it does not answer in time",
		"is the server hung or overloaded, or does a firewall drop packets? Check host and port of the clickhouse DSN: " + ports,
	}
	webPort   = outage{"this port speaks HTTP, not ClickHouse's native protocol", "use http:// in the clickhouse DSN, or the native port: " + ports}
	plainPort = outage{"this port does not speak TLS", "use the port for TLS, or take secure=true (https://) out of the clickhouse DSN: " + ports}
)

// explainSilence finds out whether a port that does not answer waits for the end of a line: an HTTP server does, when it is spoken to
// in another protocol. What was found before is not looked for again.
func (k *contact) explainSilence() outage {
	k.mu.Lock()
	known := k.outage
	k.mu.Unlock()
	switch {
	case known != nil && (*known == silence || *known == webPort || *known == plainPort):
		return *known
	case k.http && !k.tls || !k.speaksHTTP():
		return silence
	case k.tls:
		return plainPort
	}
	return webPort
}

// speaksHTTP asks the first host for its health over HTTP.
func (k *contact) speaksHTTP() bool {
	const wait = 2 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	conn, err := k.dial(ctx, k.hosts[0])
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return false
	}
	if _, err := io.WriteString(conn, "GET /ping HTTP/1.0\r\n\r\n"); err != nil {
		return false
	}
	begin := make([]byte, len("HTTP/"))
	_, err = io.ReadFull(conn, begin)
	return err == nil && string(begin) == "HTTP/"
}

// unexpectedPacket is what the driver says of an answer that is not in the native protocol: the number is the answer's first byte.
var unexpectedPacket = regexp.MustCompile(`unexpected packet \[?(\d+)\]?`)

// First bytes of an answer in another protocol.
const (
	firstOfHTTP = 'H'
	firstOfTLS  = 21 // an alert
)

// wrongPort explains an answer in another protocol than the DSN says.
func (k *contact) wrongPort(err error) (outage, bool) {
	text := err.Error()
	if packet := unexpectedPacket.FindStringSubmatch(text); packet != nil {
		switch packet[1] {
		case strconv.Itoa(firstOfHTTP):
			return webPort, true
		case strconv.Itoa(firstOfTLS):
			return k.speaksTLS(), true
		}
		return outage{"what listens there does not speak ClickHouse's native protocol", "check host and port of the clickhouse DSN: " + ports}, true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || strings.Contains(text, "server gave HTTP response to HTTPS client") {
		return plainPort, true
	}
	switch {
	case strings.Contains(text, "is for clickhouse-client program"):
		return outage{"this port speaks ClickHouse's native protocol, not HTTP", "use clickhouse:// in the clickhouse DSN, or the port for HTTP: " + ports}, true
	case strings.Contains(text, "HTTP request to an HTTPS server"), strings.Contains(text, `malformed HTTP response "\x15\x03`):
		return k.speaksTLS(), true
	case strings.Contains(text, "malformed HTTP"):
		return outage{"what listens there does not speak HTTP", "check host and port of the clickhouse DSN: " + ports}, true
	}
	if status, ok := errors.AsType[*driver.HTTPError](err); ok {
		return outage{
			fmt.Sprintf("it answers with HTTP status %d and no words of ClickHouse's: %s", status.StatusCode, k.clean(status.Err.Error())),
			"check host and port of the clickhouse DSN, and what stands between: " + ports,
		}, true
	}
	return outage{}, false
}

func (*contact) speaksTLS() outage {
	return outage{"this port speaks TLS", "put secure=true into the clickhouse DSN (or use https://), or use the port without TLS: " + ports}
}

// unconnected explains a connection that does not come about, or breaks.
func (k *contact) unconnected(err error) (outage, bool) {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || untrusted(err) {
		return outage{
			"its certificate is not trusted: " + k.clean(lastOf(err)),
			"use a host name that the certificate has, or name it with tls_server_name; a private authority has to be one of the system's",
		}, true
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return outage{"it ends the TLS handshake: " + alert.Error(), "compare the TLS settings of both sides"}, true
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return outage{fmt.Sprintf("the name %q cannot be resolved", dns.Name), "check the host of the clickhouse DSN, and DNS"}, true
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return outage{"nothing listens there (connection refused)", "start ClickHouse, or correct host and port of the clickhouse DSN: " + ports}, true
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return outage{"there is no way to the host", "check the host of the clickhouse DSN, and the network"}, true
	case silent(err):
		return silence, true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		advice := "look into the log of ClickHouse, and check that the port is the right one: " + ports
		if k.tls {
			advice = "does this port speak TLS? " + advice
		}
		return outage{"it closed the connection", advice}, true
	}
	return outage{}, false
}

func silent(err error) bool {
	var network net.Error
	return errors.Is(err, errSilence) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, driver.ErrAcquireConnTimeout) || errors.As(err, &network) && network.Timeout()
}

func untrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// lastOf gives the innermost words of an error.
func lastOf(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// misdirected reports whether an error shows that what answers is no ClickHouse that we can use: another protocol, another server, or
// one that is too old for the driver's own questions.
func misdirected(err error) bool {
	if _, ok := errors.AsType[*driver.HTTPError](err); ok {
		_, known := errors.AsType[*driver.Exception](err)
		return !known || greetingFailed(err)
	}
	text := err.Error()
	return unexpectedPacket.MatchString(text) || strings.Contains(text, "malformed HTTP") || strings.Contains(text, "server gave HTTP response to HTTPS client") ||
		errors.Is(err, driver.ErrUnsupportedServerRevision) || greetingFailed(err) || untrustedOrNoTLS(err)
}

func untrustedOrNoTLS(err error) bool {
	_, header := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return header || alert || untrusted(err)
}
