package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/talaria-run/talaria/dataset/store"
	"github.com/talaria-run/talaria/eval/query"
)

// openViews looks at runs as they are at this moment. Calling done removes the
// copies of their journals.
func openViews(dirs []string) (views []*store.View, done func(), err error) {
	temp, err := os.MkdirTemp("", "talaria-")
	if err != nil {
		return nil, nil, fmt.Errorf("making a temporary directory: %w", err)
	}
	done = func() { _ = os.RemoveAll(temp) } // of copies only
	if views, err = openViewsIn(temp, dirs); err != nil {
		done()
		return nil, nil, err
	}
	return views, done, nil
}

// openViewsIn is openViews with the copies in temp, which is the caller's.
func openViewsIn(temp string, dirs []string) ([]*store.View, error) {
	views := make([]*store.View, len(dirs))
	for i, dir := range dirs {
		own, err := os.MkdirTemp(temp, "run-")
		if err != nil {
			return nil, fmt.Errorf("making a temporary directory: %w", err)
		}
		if views[i], err = store.OpenView(dir, own); err != nil {
			return nil, notRun(err)
		}
	}
	return views, nil
}

// inputs are the views for SQL, each under the directory that the user named.
func inputs(views []*store.View, dirs []string) []query.Input {
	list := make([]query.Input, len(views))
	for i, v := range views {
		list[i] = query.FromView(v, dirs[i])
	}
	return list
}

// withSQL opens DuckDB over runs for as long as use takes.
func withSQL(ctx context.Context, dirs []string, use func(*query.DB) error) error {
	views, done, err := openViews(dirs)
	if err != nil {
		return err
	}
	defer done()
	db, err := query.Open(ctx, inputs(views, dirs), query.Options{})
	if err == nil {
		err = errors.Join(use(db), db.Close())
	}
	if mistake, ok := errors.AsType[*query.StatementError](err); ok {
		return &usageError{err: mistake}
	}
	return orDamage(err, views)
}

// orDamage is err, or the damage to the runs' files that is behind it.
func orDamage(err error, views []*store.View) error {
	if _, ok := errors.AsType[*query.UnreadableError](err); !ok {
		return err
	}
	var damage []error
	for _, v := range views {
		damage = append(damage, v.Verify())
	}
	if found := errors.Join(damage...); found != nil {
		return found
	}
	return err
}
