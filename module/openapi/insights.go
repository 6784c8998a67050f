package openapi

import (
	"maps"

	"github.com/getkin/kin-openapi/openapi3"
)

// insightResults is the schema of an insight's results (contract: api.md, section 1.5), and the named schemas that it uses.
func insightResults(e *Endpoint) (*openapi3.SchemaRef, openapi3.Schemas) {
	items := func(name string, s *openapi3.Schema) (*openapi3.SchemaRef, openapi3.Schemas) {
		return inline(listOf(refTo(name))), openapi3.Schemas{name: inline(s)}
	}
	switch e.Kind {
	case "TrendsQuery":
		return items("TrendsItem", trendsItem(e.Cohorts))
	case "LifecycleQuery":
		return items("LifecycleItem", lifecycleItem())
	case "StickinessQuery":
		return items("StickinessItem", stickinessItem())
	case "RetentionQuery":
		return items("RetentionItem", retentionItem())
	case "PathsQuery":
		return items("PathsEdge", pathsEdge())
	case "FunnelsQuery":
		switch {
		case e.Viz == "trends":
			return items("FunnelTrendsItem", funnelTrendsItem())
		case e.Viz == "time_to_convert":
			return refTo("FunnelTimes"), openapi3.Schemas{"FunnelTimes": inline(funnelTimes())}
		case e.Breakdown:
			return inline(listOf(inline(listOf(refTo("FunnelStep"))))), openapi3.Schemas{"FunnelStep": inline(funnelStep(e.Cohort))}
		}
		return items("FunnelStep", funnelStep(false))
	}
	return inline(anything()), nil
}

type members = map[string]*openapi3.Schema

func texts() *openapi3.Schema   { return listOf(inline(text())) }
func numbers() *openapi3.Schema { return listOf(inline(orNull(number()))) }

// breakdownValue is a value of a breakdown.
func breakdownValue() *openapi3.Schema {
	return described(openapi3.NewAnyOfSchema(orNull(text()), listOf(inline(orNull(text())))),
		"The value, null where it is missing; a list where there are several breakdowns.")
}

// action is the series that an item belongs to.
func action(more members) *openapi3.Schema {
	all := members{
		"id": described(orNull(text()), "The event; null for all events."), "name": text(), "type": text(), "order": int32s(), "custom_name?": orNull(text()),
	}
	maps.Copy(all, more)
	return object(all)
}

func compared(all members) *openapi3.Schema {
	all["compare?"] = described(boolean(), "True where two periods are compared.")
	all["compare_label?"] = text().WithEnum("current", "previous")
	return object(all)
}

func trendsItem(cohorts bool) *openapi3.Schema {
	value := breakdownValue()
	if cohorts {
		one := func() *openapi3.Schema { return openapi3.NewAnyOfSchema(int32s(), orNull(text())) }
		value = described(openapi3.NewAnyOfSchema(int32s(), orNull(text()), listOf(inline(one()))),
			"The value, of a cohort its id, or all; null where it is missing. A list where there are several breakdowns.")
	}
	return compared(members{
		"data": described(numbers(), "One number a bucket; none where one number stands for the whole range."),
		"days": texts(), "labels?": texts(), "count": orNull(number()), "aggregated_value?": orNull(number()), "label": text(),
		"action": orNull(action(members{
			"days": listOf(inline(moment())), "math": orNull(text()), "math_property": orNull(text()), "math_hogql": orNull(text()),
			"math_group_type_index": orNull(int32s()), "properties": openapi3.NewObjectSchema().WithAnyAdditionalProperties(),
		})),
		"filter": openapi3.NewObjectSchema().WithAnyAdditionalProperties(), "order": int32s(), "breakdown_value?": value,
	})
}

func lifecycleItem() *openapi3.Schema {
	return object(members{
		"action": action(members{"math": text()}), "data": listOf(inline(number())), "count": number(), "labels": texts(), "days": texts(), "label": text(),
		"status": text().WithEnum("new", "returning", "resurrecting", "dormant"),
	})
}

func stickinessItem() *openapi3.Schema {
	return compared(members{
		"action": action(nil), "label": text(), "count": number(), "data": described(listOf(inline(number())), "data[i] people were active in i+1 intervals."),
		"days": listOf(inline(int32s())), "labels": texts(),
	})
}

func retentionItem() *openapi3.Schema {
	return object(members{
		"values": listOf(inline(object(members{"count": number(), "label": text(), "aggregation_value?": orNull(number())}))),
		"label":  text(), "date": moment(), "breakdown_value": orNull(text()),
	})
}

func pathsEdge() *openapi3.Schema {
	return object(members{
		"source": described(text(), "The step's number, an underscore, and the path."), "target": text(), "value": number(),
		"average_conversion_time": described(orNull(number()), "Milliseconds."),
	})
}

func funnelStep(cohort bool) *openapi3.Schema {
	value := breakdownValue()
	if cohort {
		value = described(int32s(), "The id of the cohort, 0 for all people.")
	}
	return object(members{
		"action_id": orNull(text()), "name": orNull(text()), "custom_name": orNull(text()), "order": int32s(), "people": listOf(inline(anything())),
		"count": described(number(), "Actors that reached at least this step."), "type": text(),
		"average_conversion_time": described(orNull(number()), "Seconds from the step before."), "median_conversion_time": orNull(number()),
		"breakdown?": breakdownValue(), "breakdown_value?": value,
	})
}

func funnelTrendsItem() *openapi3.Schema {
	return object(members{
		"count": number(), "data": described(numbers(), "Per cent that converted."), "days": texts(), "labels": texts(), "breakdown_value?": breakdownValue(),
	})
}

func funnelTimes() *openapi3.Schema {
	bin := listOf(inline(orNull(number())))
	two := uint64(2)
	bin.MinItems, bin.MaxItems = two, &two
	return object(members{
		"bins":                    described(listOf(inline(bin)), "From how many seconds on, and how many people."),
		"average_conversion_time": orNull(number()), "median_conversion_time?": orNull(number()),
	})
}
