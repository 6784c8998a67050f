// Package filter makes conditions of property filters, and times of dates, as requests have them (contract: api.md, sections 2.2 and
// 2.4). Package bind, insights and lists share it.
package filter
