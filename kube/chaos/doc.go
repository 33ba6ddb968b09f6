// Package chaos does the catalogue's manipulations to API objects with a client: it finds
// the objects of an instance, manipulates one or all of them, and undoes what lasts.
//
// It touches only what belongs to the instance, by the standard instance label or by an
// owner reference. An object with the label [Bystander] is never touched.
package chaos
