-- What the ResourceQuotas of the tenants' namespaces permit together, if the access file says that the capacity is learned: amounts by
-- resource. It stays when they can't be read.
ALTER TABLE queue_rounds ADD COLUMN capacity jsonb;
