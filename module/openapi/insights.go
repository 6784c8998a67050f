package openapi

import (
	"fmt"
	"reflect"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/form"
)

// formRef returns the schema of a form. Named forms become schemas of the document, which endpoints share. A form that differs from an earlier one with its
// name, because of the options of its insight, gets a number.
func (w *writer) formRef(f form.Form) *openapi3.SchemaRef {
	s := w.formSchema(f)
	if f.Name == "" {
		return inline(s)
	}
	schemas, name := w.doc.Components.Schemas, f.Name
	for n := 2; schemas[name] != nil && !reflect.DeepEqual(schemas[name].Value, s); n++ {
		name = fmt.Sprint(f.Name, n)
	}
	schemas[name] = inline(s)
	return refTo(name)
}

func (w *writer) formSchema(f form.Form) *openapi3.Schema {
	s := openapi3.NewSchema()
	switch {
	case f.Type == "object" && f.Members == nil:
		s = openapi3.NewObjectSchema().WithAnyAdditionalProperties()
	case f.Type == "object":
		all := members{}
		for name, member := range f.Members {
			all[name] = w.formSchema(member)
		}
		s = object(all)
	case f.Type != "":
		s.Type = &openapi3.Types{f.Type}
	}
	s.Format, s.Description, s.Nullable, s.MinItems = f.Format, f.Description, f.Nullable, f.Size
	if f.Size > 0 {
		s.MaxItems = &f.Size
	}
	if f.Items != nil {
		s.Items = w.formRef(*f.Items)
	}
	for _, word := range f.Words {
		s.Enum = append(s.Enum, word)
	}
	for _, one := range f.Either {
		s.AnyOf = append(s.AnyOf, w.formRef(one))
	}
	return s
}

type members = map[string]*openapi3.Schema

func texts() *openapi3.Schema { return listOf(inline(text())) }
