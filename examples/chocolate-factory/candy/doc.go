// Package candy knows how to get a bar of chocolate out of a machine that is shared, slow, sometimes away and never
// exact, and it throws nothing away on a guess.
//
// The machine is the memory: what was ordered, made, measured and disposed of is asked from it at every turn. What must
// outlive the machine, that the bar was delivered, is in the candy's status.
package candy

// Name of the application.
const Name = "candy"
