// Package experiment runs the safe manipulations of the chaos catalogue against instances
// that serve. It keeps to the limits that a user declares, and reports what was done and
// what was seen.
//
// An instance has at most one manipulation at a time. A manipulation begins only while
// the instance is Ready, nothing changes, and no policy holds repairs or disruptions. The
// experiment ends at the first violated promise: an instance that does not heal in time,
// or more pods away than its disruption budget permits. What lasts is undone in any case.
//
// The package does no I/O: an [Instance] does.
package experiment
