package terminal

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// expand puts variables of the host into templates: ${NAME}, or
// ${NAME:-default} where the variable may be missing or empty. Only variables
// that the config names are the task's to have.
func (f factory) expand(templates map[string]string) (map[string]string, error) {
	values := make(map[string]string, len(templates))
	var errs []error
	variable := regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)
	for _, key := range slices.Sorted(maps.Keys(templates)) {
		values[key] = variable.ReplaceAllStringFunc(templates[key], func(match string) string {
			m := variable.FindStringSubmatch(match)
			value, why := f.hostVariable(m[1])
			if value == "" && m[2] != "" {
				return m[3]
			}
			if why != "" {
				errs = append(errs, fmt.Errorf("%s needs the host's variable %s, %s", key, m[1], why))
			}
			return value
		})
	}
	return values, errors.Join(errs...)
}

// hostVariable is a variable's value, or why there is none.
func (f factory) hostVariable(name string) (value, why string) {
	if !slices.Contains(f.params.HostEnv, name) {
		return "", "which env.host_env does not name"
	}
	if f.setup.LookupEnv != nil {
		if value, ok := f.setup.LookupEnv(name); ok {
			return value, ""
		}
	}
	return "", "which is not set"
}
