package clickhouse

import (
	"errors"
	"fmt"
	"net/url"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
)

// Logged returns the log field "error" for err. Texts from ClickHouse about a query, and from the driver about a value, may quote
// rows, literals and values of variables, so they are replaced by code and name. Texts about the connection are kept.
func Logged(err error) zap.Field {
	var exception *driver.Exception
	known, isKnown := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return zap.Skip()
	case isKnown && known.Code != 0 && known.Name != "":
		return zap.String("error", fmt.Sprintf("ClickHouse answered code %d, %s", known.Code, known.Name))
	case errors.As(err, &exception):
		return zap.String("error", fmt.Sprintf("ClickHouse answered code %d, %s", exception.Code, exception.CodeName))
	case unreachable(err):
		return zap.Error(withoutAddress(err))
	case isKnown && known.Kind != UserError:
		return zap.Error(err) // this package wrote its message
	}
	return zap.String("error", fmt.Sprintf("an error of the type %T", err))
}

// withoutAddress returns err without the URL of the request, which contains the parameters of the query.
func withoutAddress(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}
