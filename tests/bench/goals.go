package main

import "fmt"

// goal is a line of the table that is printed at the end: one of the figures that the design asks for.
type goal struct {
	what, against string
	goal          string // empty: measured to be known
	measured      string
	missed        bool
}

// atLeast and atMost are the goals of a ratio.
func atLeast(what, against string, bound, ratio float64) goal {
	return goal{what: what, against: against, goal: fmt.Sprintf(">= %.4g", bound), measured: fmt.Sprintf("%.2f", ratio), missed: ratio < bound}
}

func atMost(what, against string, bound, ratio float64) goal {
	return goal{what: what, against: against, goal: fmt.Sprintf("<= %.4g", bound), measured: fmt.Sprintf("%.2f", ratio), missed: ratio > bound}
}

// printGoals prints all that was measured as one table.
func printGoals(goals []goal) {
	fmt.Printf("Goals\n\n%-46s %-42s %10s %s\n", "", "against", "goal", "measured")
	for _, g := range goals {
		remark := ""
		if g.missed {
			remark = "  missed"
		}
		fmt.Printf("%-46s %-42s %10s %s%s\n", g.what, g.against, g.goal, g.measured, remark)
	}
}
