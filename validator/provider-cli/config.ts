/** The provider command line's configuration: PROVIDER_* environment variables. */
import { join } from 'node:path';
import { z } from 'zod';
import { type ConfigSpec, type Environment, parseConfig } from '#shared/runtime/config.ts';

const Schema = z.object({ PROVIDER_HOME: z.string().optional() });

export const PROVIDER_CONFIG: ConfigSpec<typeof Schema.shape> = {
  schema: Schema,
  prefix: 'PROVIDER_',
};

/** Returns the folder with the provider's key and session. */
export function providerHome(environment: Environment, userHome: string): string {
  return parseConfig(PROVIDER_CONFIG, environment).PROVIDER_HOME ?? join(userHome, '.podwright');
}
