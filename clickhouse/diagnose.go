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

// Codes of exceptions that an operator can fix.
const (
	unknownDatabase = 81
	accessDenied    = 497
)

const unavailable = "ClickHouse cannot be reached"

// ports describes the default ports of a ClickHouse server.
const ports = "the native protocol (clickhouse://) uses port 9000, or 9440 with TLS; HTTP (http://, https://) uses port 8123, or 8443 with TLS"

// explain finds out why ClickHouse cannot be used.
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
	return outage{reason: k.redact(withoutAddress(err).Error()), advice: "check ClickHouse's log, and host and port in the clickhouse DSN: " + ports}
}

// refused explains an error from ClickHouse itself.
func (k *contact) refused(err error) (outage, bool) {
	if old, ok := errors.AsType[*oldError](err); ok {
		return outage{reason: old.Error(), advice: "upgrade ClickHouse to " + LeastVersion + " or newer"}, true
	}
	code, text := exceptionOf(err)
	switch code {
	case 192, 193, 194, 516:
		return outage{
			reason: fmt.Sprintf("it rejects the user %q or the password (code %d)", k.user, code),
			advice: "check user and password in the clickhouse DSN; escape special characters as in a URL",
		}, true
	case unknownDatabase:
		return outage{
			reason: fmt.Sprintf("it has no database %q", k.database),
			advice: "create the database, or put another one after the host in the clickhouse DSN",
		}, true
	case 291, accessDenied:
		return outage{
			reason: fmt.Sprintf("the user %q lacks a privilege: %s", k.user, k.redact(strings.TrimSpace(text))),
			advice: "GRANT it to the user; docs/operations.md lists the required privileges",
		}, true
	case 0:
		return outage{}, false
	}
	if greetingFailed(err) {
		return outage{
			reason: fmt.Sprintf("it does not understand the client's first query (code %d): it is older than ClickHouse %s", code, LeastVersion),
			advice: "upgrade ClickHouse to " + LeastVersion + " or newer",
		}, true
	}
	return outage{reason: fmt.Sprintf("it answers with an error (code %d)", code), advice: "check ClickHouse's log"}, true
}

// greetingFailed reports whether the driver's first query over HTTP failed.
func greetingFailed(err error) bool {
	return strings.Contains(err.Error(), "failed to query server hello")
}

// oldException matches the text of an exception over HTTP from servers before 20.1, which the driver does not parse.
var oldException = regexp.MustCompile(`Code: (\d+), e\.(?:displayText|what)\(\) = (?:DB::)?(?:[A-Za-z]*Exception: )?(.*)`)

// exceptionOf returns the code and text of the exception in an error, or 0.
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

// Outages with more than one symptom.
var (
	silence = outage{
		"it does not answer in time",
		"is the server hung or overloaded, or does a firewall drop packets? Check host and port in the clickhouse DSN: " + ports,
	}
	webPort   = outage{"this port speaks HTTP, not ClickHouse's native protocol", "use http:// in the clickhouse DSN, or the native port: " + ports}
	plainPort = outage{"this port does not speak TLS", "use the TLS port, or remove secure=true (https://) from the clickhouse DSN: " + ports}
)

// explainSilence explains why a port does not answer: an HTTP server that receives another protocol waits for the end of a line.
// It keeps an explanation that was found before.
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

// speaksHTTP reports whether the first host answers an HTTP ping.
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

// unexpectedPacket matches the driver's error for an answer in another protocol. The number is the answer's first byte.
var unexpectedPacket = regexp.MustCompile(`unexpected packet \[?(\d+)\]?`)

// First bytes of an answer in another protocol.
const (
	httpFirstByte = 'H'
	tlsFirstByte  = 21 // an alert
)

// wrongPort explains an answer in a protocol other than that of the DSN.
func (k *contact) wrongPort(err error) (outage, bool) {
	text := err.Error()
	if packet := unexpectedPacket.FindStringSubmatch(text); packet != nil {
		switch packet[1] {
		case strconv.Itoa(httpFirstByte):
			return webPort, true
		case strconv.Itoa(tlsFirstByte):
			return k.speaksTLS(), true
		}
		return outage{"this port does not speak ClickHouse's native protocol", "check host and port in the clickhouse DSN: " + ports}, true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || strings.Contains(text, "server gave HTTP response to HTTPS client") {
		return plainPort, true
	}
	switch {
	case strings.Contains(text, "is for clickhouse-client program"):
		return outage{"this port speaks ClickHouse's native protocol, not HTTP", "use clickhouse:// in the clickhouse DSN, or the HTTP port: " + ports}, true
	case strings.Contains(text, "HTTP request to an HTTPS server"), strings.Contains(text, `malformed HTTP response "\x15\x03`):
		return k.speaksTLS(), true
	case strings.Contains(text, "malformed HTTP"):
		return outage{"this port does not speak HTTP", "check host and port in the clickhouse DSN: " + ports}, true
	}
	if status, ok := errors.AsType[*driver.HTTPError](err); ok {
		return outage{
			fmt.Sprintf("it answers with HTTP status %d, but not with an error of ClickHouse: %s", status.StatusCode, k.redact(status.Err.Error())),
			"check host and port in the clickhouse DSN, and any proxy in between: " + ports,
		}, true
	}
	return outage{}, false
}

func (*contact) speaksTLS() outage {
	return outage{"this port speaks TLS", "add secure=true to the clickhouse DSN (or use https://), or use the port without TLS: " + ports}
}

// unconnected explains a connection that cannot be established, or breaks.
func (k *contact) unconnected(err error) (outage, bool) {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || untrusted(err) {
		return outage{
			"its certificate is not trusted: " + k.redact(innermostText(err)),
			"use a host name from the certificate, or set tls_server_name to one; add a private certificate authority to the system's",
		}, true
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return outage{"it ends the TLS handshake: " + alert.Error(), "compare the TLS settings of both sides"}, true
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return outage{fmt.Sprintf("the host %q cannot be resolved", dns.Name), "check the host in the clickhouse DSN, and DNS"}, true
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return outage{"nothing listens there (connection refused)", "start ClickHouse, or correct host and port in the clickhouse DSN: " + ports}, true
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return outage{"there is no route to the host", "check the host in the clickhouse DSN, and the network"}, true
	case silent(err):
		return silence, true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		advice := "check ClickHouse's log, and that the port is correct: " + ports
		if k.tls {
			advice = "does this port speak TLS? " + advice
		}
		return outage{"it closed the connection", advice}, true
	}
	return outage{}, false
}

func silent(err error) bool {
	var network net.Error
	return errors.Is(err, errNoAnswer) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, driver.ErrAcquireConnTimeout) || errors.As(err, &network) && network.Timeout()
}

func untrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// innermostText returns the text of the innermost error.
func innermostText(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// misdirected reports whether an error shows that the answer is not from a usable ClickHouse: another protocol, another server, or
// a version that is too old for the driver.
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
