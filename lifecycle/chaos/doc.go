// Package chaos is the catalogue of what users, administrators, controllers and machines
// do to the objects that an operator makes or owns. It is data and pure functions: it
// names manipulations, composes them by a seed, and shortens a composition that fails.
//
// Most of the catalogue is a product, not a list: [Generate] crosses every kind of
// [Object] with every verb, every propagation policy and every field that matters. An
// application adds its own kind and its admin commands.
//
// Three programs use the catalogue: test/chaos does all of it to a real cluster and
// judges with an oracle, the simulator's models register their faults under its names,
// and kubectl governor chaos runs the safe subset.
package chaos
