// Times in words, in the zone that was chosen for the chart.
const DAY_S = 86_400;

/** As in 15:59 UTC−5, on another day than today 26 Nov, 15:59 UTC−5, of a whole day 26 Nov. */
export function timeIn(zone, time, isDay = false) {
  const date = `${zone.mark(time, 2)} ${zone.mark(time, 1)}`;
  if (isDay) return date;
  const clock = `${zone.mark(time, 3)} ${zone.label(time)}`;
  return dayIn(zone, time) === dayIn(zone, Date.now() / 1000) ? clock : `${date}, ${clock}`;
}

const dayIn = (zone, time) => Math.floor((time + zone.offset(time)) / DAY_S);
