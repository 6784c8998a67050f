// Calls the server through the client that oapi-codegen made, and prints what came.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"

	"clients/api"
)

func main() {
	key := func(_ context.Context, req *http.Request) error {
		req.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
		return nil
	}
	client, err := api.NewClientWithResponses(os.Getenv("SITE"), api.WithRequestEditorFn(key))
	if err != nil {
		log.Fatal(err)
	}
	ctx, two, none := context.Background(), 2, 0
	least := float64(2)
	answer, err := client.RowsSalesByDayWithResponse(ctx, api.SalesByDayRunRequest{Variables: api.SalesByDayVariables{Least: &least}, Limit: &two})
	if err != nil || answer.JSON200 == nil {
		log.Fatalf("rows: %v, %s", err, answer.Body)
	}
	var rows []api.SalesByDayRow = answer.JSON200.Results
	days := make([]string, len(rows))
	for i, row := range rows {
		var amount *uint64 = row.Amount // null is nil
		if amount != nil {
			days[i] = fmt.Sprint(row.Day.Format("2 January"), ": ", *amount)
		}
	}
	refused, err := client.RunSalesByDayWithResponse(ctx, api.SalesByDayRunRequest{Variables: api.SalesByDayVariables{Least: &least}, Limit: &none})
	if err != nil || refused.JSON400 == nil {
		log.Fatalf("a limit of zero: %v, %s", err, refused.Body)
	}
	views, err := client.RunViewsWithResponse(ctx, api.ViewsRunRequest{})
	if err != nil || views.JSON200 == nil {
		log.Fatalf("an insight: %v, %s", err, views.Body)
	}
	labels := make([]string, len(views.JSON200.Results))
	for i, item := range views.JSON200.Results {
		labels[i] = item.Label
	}
	counters, err := client.RowsCountersWithResponse(ctx, api.CountersRunRequest{})
	if err != nil || counters.JSON200 == nil {
		log.Fatalf("an integer of 64 bits: %v, %s", err, counters.Body)
	}
	var largest uint64 = counters.JSON200.Results[0].Largest
	out, err := json.Marshal(map[string]any{"rows": rows, "largest": fmt.Sprint(largest), "days": days, "detail": refused.JSON400.Detail, "labels": labels})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(out))
}
