// Package sim runs an application's rules through whole scenarios in logical time,
// with faults, against an in-memory model of the application.
//
// A [Scenario] names the planner, its gates, a model and what must hold at every
// instant. [Run] runs it with a seed. The seed decides every fault and every random
// number, so a failed run can be replayed:
//
//	GOVERNOR_SIM_SEED=4711 go test ./apps/ring/ -run TestScenarios -v
//
// A failed run is shrunk first, to fewer kinds of faults and fewer ticks with faults.
// The test prints the variables that replay the shortest run.
//
// The faults are those that an operator meets. It crashes between any two effects, its
// cache is stale, its writes conflict, and it misses events. The API server refuses
// single calls or is away. Its clock jumps, or another replica leads with another clock.
// The application is slow, or breaks in the ways that the model offers. A stale cache is never older than the operator's own last write, as in
// the engine, and a restarted operator reads everything again.
//
// Safety is checked after every effect and at every tick. After the faults have
// stopped, the scenario must converge: the decision is Settled within
// Scenario.ConvergeTicks, and no effect follows.
package sim
