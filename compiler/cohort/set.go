package cohort

import "slices"

// set is a set of people in which nobody is who satisfies no leaf: what a query can list.
//
//sumtype:decl
type set interface{ set() }

// leaf are the people who satisfy a condition, whether it is negated or not.
type leaf struct{ is Node }

// union are the people in any of some sets, at least two.
type union []set

// rest are the people in all of some sets, at least one, and in none of others.
type rest struct{ all, none []set }

func (leaf) set()  {}
func (union) set() {}
func (rest) set()  {}

// normal gives a node as a set, or as the people who are not in a set (contract: cohorts.md, section 2). An OR with a negated member is the
// complement of an AND.
func normal(n Node) (s set, negated bool) {
	switch n := n.(type) {
	case *Group:
		return normalGroup(n)
	case *Person:
		return leaf{n}, n.Negated
	case *Created:
		return leaf{n}, n.Negated
	case *Member:
		return leaf{n}, n.Negated
	case *Behavior:
		return leaf{n}, n.Negated
	}
	panic("BUG: a condition of a cohort that is nothing")
}

func normalGroup(g *Group) (s set, negated bool) {
	var plain, inverse []set
	for _, member := range g.All {
		if s, negated := normal(member); negated {
			inverse = append(inverse, s)
		} else {
			plain = append(plain, s)
		}
	}
	switch {
	case g.Or && len(inverse) == 0:
		return unionOf(plain), false
	case g.Or:
		return restOf(inverse, plain), true
	case len(plain) == 0:
		return unionOf(inverse), true
	}
	return restOf(plain, inverse), false
}

// unionOf joins sets, at least one.
func unionOf(sets []set) set {
	var out union
	for _, s := range sets {
		if inner, ok := s.(union); ok {
			out = append(out, inner...)
		} else {
			out = append(out, s)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

// restOf is who is in all of some sets, at least one, and in none of others.
func restOf(all, none []set) set {
	var out rest
	for _, s := range all {
		if inner, ok := s.(rest); ok {
			out.all, out.none = append(out.all, inner.all...), append(out.none, inner.none...)
		} else {
			out.all = append(out.all, s)
		}
	}
	for _, s := range none {
		if inner, ok := s.(union); ok {
			out.none = append(out.none, inner...)
		} else {
			out.none = append(out.none, s)
		}
	}
	if len(out.all) == 1 && len(out.none) == 0 {
		return out.all[0]
	}
	return out
}

// source is where the people of a set are found.
type source int

const (
	several   source = iota // several sources
	ofEvents                // one pass over events finds them
	ofPersons               // one pass over the table of people does
	ofMembers               // they are the members of other cohorts
)

// sourceOf reports where the people of a set are found.
func sourceOf(s set) source {
	switch s := s.(type) {
	case leaf:
		switch s.is.(type) {
		case *Behavior:
			return ofEvents
		case *Person, *Created:
			return ofPersons
		case *Member:
			return ofMembers
		case *Group:
		}
	case union:
		return common(s)
	case rest:
		if from := common(append(slices.Clip(s.all), s.none...)); from != ofMembers {
			return from
		}
	}
	return several
}

// common is the source that sets share.
func common(sets []set) source {
	out := sourceOf(sets[0])
	for _, s := range sets[1:] {
		if sourceOf(s) != out {
			return several
		}
	}
	return out
}

// apart sorts sets by their sources.
func apart(sets []set) map[source][]set {
	out := map[source][]set{}
	for _, s := range sets {
		from := sourceOf(s)
		out[from] = append(out[from], s)
	}
	return out
}
