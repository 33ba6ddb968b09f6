package policy

import "time"

// Peer is another object, as far as waves ask about it.
type Peer struct {
	Object
	// Settled says that everything is as declared, for the present declaration.
	Settled bool
	// Since is since when it is settled, or not.
	Since time.Time
	// Stalled is why nothing improves there before somebody acts; empty if it does.
	Stalled string
}
