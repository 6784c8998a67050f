package clickhouse

import (
	"errors"
	"fmt"
	"net/url"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
)

// Logged is the field "error" of a log line for err. What ClickHouse says of a query, and what a driver says of a value, may quote rows,
// literals and values of variables, so the code and the name stand for it; what it says of the connection stays.
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
		return zap.Error(err) // its message is one of ours
	}
	return zap.String("error", fmt.Sprintf("an error of the type %T", err))
}

// withoutAddress is err without the address of a request, whose query string holds the parameters of a query.
func withoutAddress(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}
