package source

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// parquetRows reads a Parquet file row group by row group: it holds a page of
// each column, and a column's dictionary.
type parquetRows struct {
	file   *parquet.File
	tree   *parquetNode
	groups []parquet.RowGroup // that are still to be read
	rows   parquet.Rows       // of the group that is being read, or nil
	batch  []parquet.Row
	ahead  []parquet.Row // of batch, still to be returned
	number int           // of the latest row
	values [][]parquet.Value
	ended  bool // the group has no more rows behind those ahead
}

// minParquet is the size of a file's two marks and the length of its footer.
const minParquet = 12

// parquetBatch is how many rows are decoded at once.
const parquetBatch = 64

func newParquetRows(r io.ReaderAt, size int64) (p *parquetRows, err error) {
	defer recovered(&err)
	if size < minParquet {
		return nil, fmt.Errorf("the Parquet file is cut off after %d bytes; fetch the file again", size)
	}
	// Statistics and bloom filters are for those who look for single rows.
	file, err := parquet.OpenFile(io.NewSectionReader(r, 0, size), size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, brokenParquet(err)
	}
	tree, leaves, err := parquetTree(file.Metadata().Schema)
	if err != nil {
		return nil, err
	}
	return &parquetRows{
		file: file, tree: tree, groups: file.RowGroups(),
		batch: make([]parquet.Row, parquetBatch), values: make([][]parquet.Value, leaves),
	}, nil
}

func (p *parquetRows) next() (row map[string]any, err error) {
	defer recovered(&err)
	p.number++
	for len(p.ahead) == 0 {
		if err := p.read(); err != nil {
			return nil, err
		}
	}
	row, err = p.assemble(p.ahead[0])
	p.ahead = p.ahead[1:]
	return row, err
}

// read decodes the next rows.
func (p *parquetRows) read() error {
	if p.rows == nil {
		for len(p.groups) > 0 && p.groups[0].NumRows() == 0 {
			p.groups = p.groups[1:]
		}
		if len(p.groups) == 0 {
			return io.EOF
		}
		p.rows, p.groups, p.ended = p.groups[0].Rows(), p.groups[1:], false
	}
	if p.ended {
		err := p.rows.Close()
		p.rows = nil
		return brokenParquet(err)
	}
	n, err := p.rows.ReadRows(p.batch)
	p.ahead = p.batch[:n]
	if errors.Is(err, io.EOF) {
		p.ended = true
		return nil
	}
	if err == nil && n == 0 {
		err = io.ErrNoProgress
	}
	return brokenParquet(err)
}

// assemble makes a row of the values of its columns.
func (p *parquetRows) assemble(row parquet.Row) (map[string]any, error) {
	for i := range p.values {
		p.values[i] = p.values[i][:0]
	}
	for _, v := range row {
		p.values[v.Column()] = append(p.values[v.Column()], v)
	}
	m := make(map[string]any, len(p.tree.children))
	for _, c := range p.tree.children {
		v, err := c.value(p.values)
		if err != nil {
			return nil, badRowError{fmt.Errorf("the column %q: %w", c.name, err)}
		}
		m[c.name] = v
	}
	return m, nil
}

func (p *parquetRows) at(e RowError) RowError {
	e.Row = p.number
	return e
}

func (p *parquetRows) close() {
	if p.rows != nil {
		_ = p.rows.Close() // of what was only read
	}
}

func brokenParquet(err error) error {
	if err == nil || errors.Is(err, errRead) {
		return err
	}
	return fmt.Errorf("the Parquet data is broken or cut off: %w; fetch the file again", err)
}

// recovered makes an error of a library's panic at broken data.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = brokenParquet(fmt.Errorf("%v", p))
	}
}
