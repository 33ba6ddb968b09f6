package driver

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/governor-dev/governor/lifecycle"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/candy"
)

// Which machine makes too many bad bars?
//
//	sum by (machine) (rate(chocolate_bars_total{result="Dispose"}[1h])) / sum by (machine) (rate(chocolate_bars_total[1h]))
var (
	bars = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chocolate_bars_total", Help: "Bars by what was done with them and why.",
	}, []string{"namespace", "machine", "result", "reason"})
	deviation = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "chocolate_bar_deviation", Help: "Sugar that was measured minus sugar that was wanted, in mg/g.",
		Buckets: []float64{-80, -40, -20, -10, -5, 0, 5, 10, 20, 40, 80},
	}, []string{"namespace", "machine"})
)

func init() { metrics.Registry.MustRegister(bars, deviation) }

// count counts a bar that has left the machine.
func count(c *v1.Candy, seen candy.World, s lifecycle.Step) {
	if s.Name != candy.Dispose && s.Name != candy.Deliver {
		return
	}
	bars.WithLabelValues(c.Namespace, c.Spec.Machine, s.Name, s.Reason).Inc()
	if seen.Job != nil && seen.Job.Bar != nil && seen.Job.Bar.Measured != nil {
		off := candy.Median(seen.Job.Bar.Measured.Samples) - seen.Job.Bar.Setting
		deviation.WithLabelValues(c.Namespace, c.Spec.Machine).Observe(float64(off))
	}
}
