package record

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/internal/chjson"
)

// Append appends the record as a line of JSON, without its end, which Parse reads back as the same record. It leaves out the line number, the source, and what
// only formats other than lines provide (PersonProperties, OtherID). The texts and times of the record must be such as Parse accepts.
func Append(dst []byte, r *Record) []byte {
	switch r.Kind {
	case Person:
		dst = appendTexts(append(dst, `{"type":"person","distinct_ids":`...), r.DistinctIDs)
	case Group:
		dst = chjson.AppendString(append(dst, `{"type":"group","group_type":`...), r.GroupType)
		if r.GroupIndex >= 0 {
			dst = strconv.AppendInt(append(dst, `,"group_type_index":`...), int64(r.GroupIndex), 10)
		}
		dst = chjson.AppendString(append(dst, `,"group_key":`...), r.GroupKey)
	case Cohort:
		dst = strconv.AppendInt(append(dst, `{"type":"cohort","cohort_id":`...), r.Cohort, 10)
		dst = appendTexts(append(dst, `,"distinct_ids":`...), r.DistinctIDs)
	case Event:
		dst = r.appendEvent(dst)
	}
	if r.PersonID != uuid.Nil {
		dst = append(appendUUID(append(dst, `,"person_id":"`...), r.PersonID), '"')
	}
	if !r.CreatedAt.IsZero() {
		dst = appendTime(append(dst, `,"created_at":`...), r.CreatedAt)
	}
	if len(r.Properties) > 0 {
		dst = r.Properties.Append(append(dst, `,"properties":`...))
	}
	return append(dst, '}')
}

func (r *Record) appendEvent(dst []byte) []byte {
	dst = chjson.AppendString(append(dst, `{"event":`...), r.Event)
	dst = chjson.AppendString(append(dst, `,"distinct_id":`...), r.DistinctID)
	dst = appendTime(append(dst, `,"timestamp":`...), r.Timestamp)
	if r.HasUUID {
		dst = append(appendUUID(append(dst, `,"uuid":"`...), r.UUID), '"')
	}
	if r.Elements != "" {
		dst = chjson.AppendString(append(dst, `,"elements_chain":`...), r.Elements)
	}
	if r.SharedID {
		dst = append(dst, `,"shared_id":true`...)
	}
	return dst
}

func appendTexts(dst []byte, texts []string) []byte {
	dst = append(dst, '[')
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = chjson.AppendString(dst, text)
	}
	return append(dst, ']')
}

// appendTime appends a time with microseconds, the precision of records.
func appendTime(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(append(dst, '"'), "2006-01-02T15:04:05.999999Z07:00")
	return append(dst, '"')
}

func appendUUID(dst []byte, id uuid.UUID) []byte {
	const digits = "0123456789abcdef"
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, digits[b>>4], digits[b&0xf])
	}
	return dst
}
