/** Great-circle distance for the distance filter. Pure. */

const EARTH_RADIUS_MILES = 3958.7613;

export type Coordinates = { lat: number; lon: number };

/** Miles between two points on the surface (haversine). */
export function distanceMiles(from: Coordinates, to: Coordinates): number {
  const latDelta = radians(to.lat - from.lat);
  const lonDelta = radians(to.lon - from.lon);
  const chord =
    Math.sin(latDelta / 2) ** 2 +
    Math.cos(radians(from.lat)) * Math.cos(radians(to.lat)) * Math.sin(lonDelta / 2) ** 2;
  return 2 * EARTH_RADIUS_MILES * Math.asin(Math.min(1, Math.sqrt(chord)));
}

function radians(degrees: number): number {
  return (degrees * Math.PI) / 180;
}
