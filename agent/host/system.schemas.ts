/** Wire forms of the agent's public routes that only operators read. */
import { z } from 'zod';

export const Health = z.object({ status: z.literal('ok') });
