// Package sim runs an application's rules through whole lives, in logical time,
// against an in-memory model of the application, with faults.
//
// A [Life] names the planner, its gates, a model and what must be true at every
// instant. [Run] lives it with a seed: the seed decides every fault and every
// number, so a life that failed is lived again by its number:
//
//	GOVERNOR_SIM_SEED=4711 go test ./apps/ring/ -run TestLives -v
//
// A life that failed is shrunk first, to fewer kinds of faults and a shorter storm,
// and the test says with which variables to live it again.
//
// The faults are those an operator meets: it crashes between any two effects; its
// cache is stale; its write conflicts; it misses wake-ups; the API server refuses
// single calls or is away; the application is slow, or breaks in the ways that the
// model offers. A stale cache is never older than the operator's own last write,
// as in the engine, and a restarted operator has read everything afresh.
//
// Safety is checked after every effect and at every tick. When the faults have
// stopped, the life must converge: Settled within Life.Patience, and then no
// effect any more.
package sim
