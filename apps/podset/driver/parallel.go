package driver

import (
	"sync"
	"sync/atomic"
)

// maxRequests is the maximum number of concurrent requests of all sets. etcd writes
// concurrent requests to disk together, so a smaller number would be slower.
const maxRequests = 256

// requestLimit limits concurrent requests: each request holds one slot.
type requestLimit chan struct{}

// inParallel runs do for 0 to n-1, and returns the error of the lowest number that failed.
func (h requestLimit) inParallel(n int, do func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(n, cap(h)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				h <- struct{}{}
				errs[i] = do(i)
				<-h
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
