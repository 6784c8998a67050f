package main

import "fmt"

// goal is a line of the summary table: a figure and its goal.
type goal struct {
	what, against string
	goal          string // empty if there is no goal
	measured      string
	missed        bool
}

// atLeast returns a goal with a lower bound for a ratio.
func atLeast(what, against string, bound, ratio float64) goal {
	return goal{what: what, against: against, goal: fmt.Sprintf(">= %.4g", bound), measured: fmt.Sprintf("%.2f", ratio), missed: ratio < bound}
}

// atMost returns a goal with an upper bound for a ratio.
func atMost(what, against string, bound, ratio float64) goal {
	return goal{what: what, against: against, goal: fmt.Sprintf("<= %.4g", bound), measured: fmt.Sprintf("%.2f", ratio), missed: ratio > bound}
}

// printGoals prints the summary table.
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
