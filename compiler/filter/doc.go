// Package filter builds conditions from the property filters of requests, and times from their dates (contract: api.md, sections 2.2 and 2.4).
// Package bind, insights and lists share it.
package filter
