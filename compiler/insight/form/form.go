// Package form describes the forms of JSON values, for documents about the answers of insights.
package form

import "maps"

// Form is the form of a JSON value. The zero value is any value.
type Form struct {
	// Name is the name of a form that documents define once and refer to; empty for forms that are written inline.
	Name string
	// Type is array, boolean, integer, number, object or string; empty for any.
	Type string
	// Format refines the type, such as double or date-time; empty for nothing.
	Format      string
	Description string
	Nullable    bool
	// Items is the form of the items of an array, and Size the number of items; 0 for any.
	Items *Form
	Size  uint64
	// Members are the members of an object. The names of those that may be missing end in a question mark. Nil allows any members.
	Members Members
	// Words are the allowed texts; nil for any.
	Words []string
	// Either are alternatives, one of which the value has.
	Either []Form
}

// Members are the forms of an object's members, by name.
type Members map[string]Form

// The forms without parts.
func Text() Form    { return Form{Type: "string"} }
func Number() Form  { return Form{Type: "number", Format: "double"} }
func Integer() Form { return Form{Type: "integer", Format: "int32"} }
func Bool() Form    { return Form{Type: "boolean"} }
func Moment() Form  { return Form{Type: "string", Format: "date-time"} }

// Open is an object whose members are not described.
func Open() Form { return Form{Type: "object"} }

// List is an array of values of the same form.
func List(items Form) Form { return Form{Type: "array", Items: &items} }

// Texts and Numbers are arrays; a number may be null.
func Texts() Form   { return List(Text()) }
func Numbers() Form { return List(Number().OrNull()) }

// Object is an object with the given members.
func Object(m Members) Form { return Form{Type: "object", Members: m} }

// Either is a value of one of several forms.
func Either(forms ...Form) Form { return Form{Either: forms} }

// OrNull returns the form with null allowed.
func (f Form) OrNull() Form {
	f.Nullable = true
	return f
}

// Says returns the form with a description.
func (f Form) Says(description string) Form {
	f.Description = description
	return f
}

// As returns the form with a name of its own.
func (f Form) As(name string) Form {
	f.Name = name
	return f
}

// BreakdownValue is a value of a breakdown.
func BreakdownValue() Form {
	value := Text().OrNull()
	return Either(value, List(value)).Says("The value, null where it is missing; a list where there are several breakdowns.")
}

// Action is the series that an item of an answer belongs to: its id, the members of every kind of insight, and more.
func Action(id Form, more Members) Form {
	all := Members{
		"id": id, "name": Text(), "type": Text(), "order": Integer(), "custom_name?": Text().OrNull(),
	}
	maps.Copy(all, more)
	return Object(all)
}

// Compared is an object that belongs to one of two periods if these are compared.
func Compared(m Members) Form {
	m["compare?"] = Bool().Says("True where two periods are compared.")
	m["compare_label?"] = Form{Type: "string", Words: []string{"current", "previous"}}
	return Object(m)
}
