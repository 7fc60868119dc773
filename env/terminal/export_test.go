package terminal

import "fmt"

// SetHostEnv sets the env's parameter host_env, as a config does.
func SetHostEnv(into any, names []string) error {
	p, ok := into.(*params)
	if !ok {
		return fmt.Errorf("decoding into %T", into)
	}
	p.HostEnv = names
	return nil
}
