package cohort

import "slices"

// set is a set of people that excludes anyone who satisfies none of its leaves, so that a query can list it.
//
//sumtype:decl
type set interface{ set() }

// leaf is the people who satisfy a condition, ignoring its negation.
type leaf struct{ is Node }

// union is the people in any of at least two sets.
type union []set

// rest is the people in all of at least one set, and in none of others.
type rest struct{ all, none []set }

func (leaf) set()  {}
func (union) set() {}
func (rest) set()  {}

// normal returns a node as a set, or with negated as the complement of one (contract: cohorts.md, section 2). An OR with a negated member is
// the complement of an AND.
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

// unionOf returns the union of at least one set.
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

// restOf returns the people in all of at least one set, and in none of others.
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
	several   source = iota // more than one source
	ofEvents                // one pass over events
	ofPersons               // one pass over the table of people
	ofMembers               // the members of other cohorts
)

// sourceOf returns where the people of a set are found.
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

// common returns the source of all sets, or several if it is not the same.
func common(sets []set) source {
	out := sourceOf(sets[0])
	for _, s := range sets[1:] {
		if sourceOf(s) != out {
			return several
		}
	}
	return out
}

// groupBySource groups sets by their source.
func groupBySource(sets []set) map[source][]set {
	out := map[source][]set{}
	for _, s := range sets {
		from := sourceOf(s)
		out[from] = append(out[from], s)
	}
	return out
}
