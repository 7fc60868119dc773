package source

import (
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	pqformat "github.com/parquet-go/parquet-go/format"

	"github.com/talaria-run/talaria/dataset"
)

// parquetNode is a column of a Parquet file, or a field within one.
type parquetNode struct {
	name     string
	kind     parquetKind
	optional bool
	repeated bool
	def, rep int // highest definition and repetition level of its own
	children []*parquetNode
	first    int // the first of the leaves beneath it
	leaves   int // how many there are
	convert  func(parquet.Value) (any, error)
}

type parquetKind int

const (
	parquetGroup parquetKind = iota
	parquetLeaf
	parquetList // a group around a repeated one, which is a list's nesting in files
	parquetMap
)

// maxParquetNodes bounds a schema that is broken.
const maxParquetNodes = 1 << 20

// parquetTree makes the tree of a schema, whose elements stand in the order of
// a depth-first walk.
func parquetTree(elements []pqformat.SchemaElement) (root *parquetNode, leaves int, err error) {
	b := &treeBuilder{elements: elements}
	if len(elements) == 0 || len(elements) > maxParquetNodes {
		return nil, 0, brokenParquet(fmt.Errorf("a schema of %d elements", len(elements)))
	}
	root, err = b.node(&parquetNode{}, 0)
	if err != nil {
		return nil, 0, err
	}
	seen := map[string]bool{}
	for _, c := range root.children {
		if seen[c.name] {
			return nil, 0, fmt.Errorf("two columns are called %q; rename one of them", c.name)
		}
		seen[c.name] = true
	}
	return root, b.leaves, nil
}

type treeBuilder struct {
	elements []pqformat.SchemaElement // still to be taken
	leaves   int                      // taken so far
}

func (b *treeBuilder) node(parent *parquetNode, depth int) (*parquetNode, error) {
	if len(b.elements) == 0 || depth > maxDepth {
		return nil, brokenParquet(errors.New("its schema does not fit together"))
	}
	e := &b.elements[0]
	b.elements = b.elements[1:]
	n := &parquetNode{name: e.Name, def: parent.def, rep: parent.rep, first: b.leaves}
	if e.RepetitionType.Valid && depth > 0 {
		n.optional = e.RepetitionType.V == pqformat.Optional
		n.repeated = e.RepetitionType.V == pqformat.Repeated
	}
	if n.optional || n.repeated {
		n.def++
	}
	if n.repeated {
		n.rep++
	}
	if !e.NumChildren.Valid || e.Type.Valid {
		n.kind, n.leaves = parquetLeaf, 1
		b.leaves++
		n.convert = parquetConverter(e)
		return n, nil
	}
	for range e.NumChildren.V {
		c, err := b.node(n, depth+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, c)
	}
	n.leaves = b.leaves - n.first
	if n.leaves == 0 && depth > 0 {
		return nil, fmt.Errorf("the column %q is a struct without fields; leave it out", n.name)
	}
	n.kind = groupKind(e, n)
	return n, nil
}

// groupKind tells what a group stands for.
func groupKind(e *pqformat.SchemaElement, n *parquetNode) parquetKind {
	isList := e.ConvertedType.Valid && e.ConvertedType.V == deprecated.List
	isMap := e.ConvertedType.Valid && (e.ConvertedType.V == deprecated.Map || e.ConvertedType.V == deprecated.MapKeyValue)
	switch e.LogicalType.Value.(type) {
	case *pqformat.ListType:
		isList = true
	case *pqformat.MapType:
		isMap = true
	}
	if len(n.children) != 1 || !n.children[0].repeated {
		return parquetGroup
	}
	inner := n.children[0]
	switch {
	case isMap && inner.kind == parquetGroup && len(inner.children) == 2:
		return parquetMap
	case isList:
		return parquetList
	}
	return parquetGroup
}

// value takes the node's value of a row from the values of its leaves.
func (n *parquetNode) value(leaves [][]parquet.Value) (any, error) {
	if !n.repeated {
		return n.single(leaves)
	}
	list := []any{}
	if next, err := n.peek(leaves); err != nil {
		return nil, err
	} else if next.DefinitionLevel() < n.def {
		return list, n.skip(leaves)
	}
	for {
		v, err := n.single(leaves)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		rest := leaves[n.first]
		if len(rest) == 0 || rest[0].RepetitionLevel() < n.rep {
			return list, nil
		}
	}
}

// single takes the value of a node that is no list, or of one entry of a list.
func (n *parquetNode) single(leaves [][]parquet.Value) (any, error) {
	next, err := n.peek(leaves)
	if err != nil {
		return nil, err
	}
	if next.DefinitionLevel() < n.def {
		return nil, n.skip(leaves)
	}
	switch n.kind {
	case parquetLeaf:
		leaves[n.first] = leaves[n.first][1:]
		if next.IsNull() {
			return nil, nil
		}
		return n.convert(next)
	case parquetList:
		return n.list(leaves)
	case parquetMap:
		return n.mapping(leaves)
	default:
		return n.group(leaves)
	}
}

func (n *parquetNode) group(leaves [][]parquet.Value) (any, error) {
	m := make(map[string]any, len(n.children))
	for _, c := range n.children {
		v, err := c.value(leaves)
		if err != nil {
			return nil, err
		}
		m[c.name] = v
	}
	return m, nil
}

// list unwraps the group that stands around each entry of a list, unless it is
// the entry, as old writers have it.
func (n *parquetNode) list(leaves [][]parquet.Value) (any, error) {
	inner := n.children[0]
	v, err := inner.value(leaves)
	if err != nil || inner.kind != parquetGroup || len(inner.children) != 1 ||
		inner.name == "array" || inner.name == n.name+"_tuple" {
		return v, err
	}
	entries, _ := v.([]any)
	for i, e := range entries {
		wrapper, _ := e.(map[string]any)
		entries[i] = wrapper[inner.children[0].name]
	}
	return entries, nil
}

func (n *parquetNode) mapping(leaves [][]parquet.Value) (any, error) {
	inner := n.children[0]
	v, err := inner.value(leaves)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	entries, _ := v.([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		key := dataset.Text(entry[inner.children[0].name])
		if _, twice := object[key]; twice {
			return nil, fmt.Errorf("the key %q is there twice in one map", key)
		}
		object[key] = entry[inner.children[1].name]
	}
	return object, nil
}

// peek is the next value of the first leaf: it tells whether the node is there.
func (n *parquetNode) peek(leaves [][]parquet.Value) (parquet.Value, error) {
	if len(leaves[n.first]) == 0 {
		return parquet.Value{}, fmt.Errorf("the values of %q do not fit together", n.name)
	}
	return leaves[n.first][0], nil
}

// skip goes over the null that each leaf of an absent node has.
func (n *parquetNode) skip(leaves [][]parquet.Value) error {
	for i := n.first; i < n.first+n.leaves; i++ {
		if len(leaves[i]) == 0 {
			return fmt.Errorf("the values of %q do not fit together", n.name)
		}
		leaves[i] = leaves[i][1:]
	}
	return nil
}
