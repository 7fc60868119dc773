package source

import (
	"errors"
	"io"

	"github.com/talaria-run/talaria/dataset/arrowio"
)

// arrowRows reads an Arrow file or stream.
type arrowRows struct {
	reader *arrowio.Reader
	number int // of the latest row
}

func newArrowRows(r io.Reader) (*arrowRows, error) {
	reader, err := arrowio.NewReader(r)
	if err != nil {
		return nil, err
	}
	return &arrowRows{reader: reader}, nil
}

func (a *arrowRows) next() (map[string]any, error) {
	a.number++
	row, err := a.reader.Next()
	if _, bad := errors.AsType[arrowio.RowError](err); bad {
		return nil, badRowError{err}
	}
	return row, err
}

func (a *arrowRows) at(e RowError) RowError {
	e.Row = a.number
	return e
}

func (a *arrowRows) close() { a.reader.Close() }
